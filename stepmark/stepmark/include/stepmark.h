/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * stepmark.h - marks for inference steps from C11 and C++17. Header only; link with pthreads.
 *
 *	static uint32_t decode, chat;
 *	decode = stepmark_kind("decode"), chat = stepmark_tenant("chat");   once
 *	stepmark_begin(decode, chat);
 *	...
 *	stepmark_end();
 *
 * A begin inside a step is a stage of it. A thread's marks go to a slot of its own in the page of
 * stepmark_page.h: no lock and no system call after its first mark. Where the system gives no page
 * every call does nothing, and stepmark_init() says why.
 *
 * All translation units of a program and the libraries linked with it share one page, C and C++
 * mixed, through weak symbols. A library loaded with RTLD_LOCAL has a page of its own.
 */
#ifndef STEPMARK_H
#define STEPMARK_H

#include "stepmark_page.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#error "stepmark.h: compile with -std=gnu11 or -D_GNU_SOURCE, for memfd_create and gettid"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One definition per program, whichever translation unit it comes from. */
#define STEPMARK_SHARED __attribute__((weak, visibility("default")))

#define STEPMARK_DEPTH 16 /* open steps and stages of a thread; deeper ones are not told apart */

struct stepmark_process {
	pthread_mutex_t lock;
	struct stepmark_page *page;
	int error; /* why there is no page */
	int fd;
	ino_t inode;
};

struct stepmark_open {
	uint64_t number;
	uint64_t begin_ns;
	uint32_t kind;
	uint32_t nr_shares;
	struct stepmark_share shares[STEPMARK_SHARES];
};

struct stepmark_thread {
	struct stepmark_slot *slot;
	struct stepmark_done *ring;
	uint64_t number;   /* the last one used */
	uint32_t attached; /* has looked for a slot, found or not */
	uint32_t depth;
	uint32_t tick; /* depth at which a tick is open; 0: none */
	struct stepmark_open open[STEPMARK_DEPTH];
};

STEPMARK_SHARED struct stepmark_process stepmark_the_process = {PTHREAD_MUTEX_INITIALIZER, NULL, 0,
								-1, 0};
STEPMARK_SHARED __thread struct stepmark_thread stepmark_the_thread;

/* CLOCK_MONOTONIC, the clock of all marks. */
static inline uint64_t stepmark_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The page */

static inline int stepmark_memfd(void)
{
	enum { CLOEXEC = 1, NOEXEC_SEAL = 8 }; /* linux/memfd.h; the latter since 6.3 */
	/* Where vm.memfd_noexec is 2, no other is allowed. */
	long fd = syscall(SYS_memfd_create, "stepmark", CLOEXEC | NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_memfd_create, "stepmark", CLOEXEC);
	return (int)fd;
}

static inline void stepmark_write_header(struct stepmark_header *header)
{
	header->version = STEPMARK_VERSION;
	header->header_size = STEPMARK_HEADER_SIZE;
	header->page_size = sizeof(struct stepmark_page);
	header->kinds = STEPMARK_KINDS;
	header->tenants = STEPMARK_TENANTS;
	header->name_len = STEPMARK_NAME_LEN;
	header->slots = STEPMARK_SLOTS;
	header->ring = STEPMARK_RING;
	header->pid = (uint32_t)getpid();
	header->nr_kinds = 1;
	header->nr_tenants = 1;
}

/* With the names of another page, if any, so that ids stay what they are. Lock held. */
static inline void stepmark_open_page(const struct stepmark_page *names)
{
	struct stepmark_process *process = &stepmark_the_process;
	struct stepmark_page *page = NULL;
	struct stat status;
	int fd = stepmark_memfd();

	if (fd >= 0 && !ftruncate(fd, sizeof(*page)) && !fstat(fd, &status)) {
		void *mapped = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		page = mapped == MAP_FAILED ? NULL : (struct stepmark_page *)mapped;
	}
	if (!page) {
		process->error = errno;
		if (fd >= 0)
			close(fd);
		return;
	}
	stepmark_write_header(&page->header);
	if (names) {
		page->header.nr_kinds = names->header.nr_kinds;
		page->header.nr_tenants = names->header.nr_tenants;
		memcpy(page->kinds, names->kinds, sizeof(page->kinds));
		memcpy(page->tenants, names->tenants, sizeof(page->tenants));
	}
	__atomic_store_n(&page->header.magic, STEPMARK_MAGIC, __ATOMIC_RELEASE);
	process->fd = fd;
	process->inode = status.st_ino;
	process->page = page;
}

/* In a forked child: the parent's page is not ours to write, nor are its open steps ours. */
static inline void stepmark_after_fork(void)
{
	struct stepmark_process *process = &stepmark_the_process;
	struct stepmark_page *parents = process->page;
	struct stat status;

	pthread_mutex_init(&process->lock,
			   NULL); /* another thread of the parent may have held it */
	memset(&stepmark_the_thread, 0, sizeof(stepmark_the_thread));
	/* The program may have closed all descriptors and reused ours. */
	if (!fstat(process->fd, &status) && status.st_ino == process->inode)
		close(process->fd);
	process->fd = -1;
	process->page = NULL;
	if (parents) {
		stepmark_open_page(parents);
		munmap(parents, sizeof(*parents));
	}
}

static inline struct stepmark_page *stepmark_locked_page(void)
{
	struct stepmark_process *process = &stepmark_the_process;

	pthread_mutex_lock(&process->lock);
	if (!process->page && !process->error) {
		stepmark_open_page(NULL);
		if (process->page)
			pthread_atfork(NULL, NULL, stepmark_after_fork);
	}
	return process->page;
}

static inline void stepmark_unlock(void)
{
	pthread_mutex_unlock(&stepmark_the_process.lock);
}

/* 0 when marks reach a page; else the errno of what the system refused. Need not be called. */
static inline int stepmark_init(void)
{
	int error;

	stepmark_locked_page();
	error = stepmark_the_process.page ? 0 : stepmark_the_process.error;
	stepmark_unlock();
	return error;
}

/* Names */

/* UTF-8, cut between characters. */
static inline size_t stepmark_name_length(const char *name)
{
	size_t length = strlen(name);

	if (length < STEPMARK_NAME_LEN)
		return length;
	length = STEPMARK_NAME_LEN - 1;
	while (length && ((unsigned char)name[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static inline uint32_t stepmark_name_id(struct stepmark_name *table, uint32_t *count,
					uint32_t limit, uint64_t *lost, const char *name)
{
	struct stepmark_name padded = {{0}};
	uint32_t id;

	memcpy(padded.text, name, stepmark_name_length(name));
	for (id = 0; id < *count; id++) {
		if (!memcmp(&table[id], &padded, sizeof(padded)))
			return id;
	}
	if (id == limit) {
		++*lost;
		return 0;
	}
	table[id] = padded;
	__atomic_store_n(count, id + 1, __ATOMIC_RELEASE);
	return id;
}

/* The id of a step kind; of any name once the table is full, 0. Takes a lock: keep the id. */
static inline uint32_t stepmark_kind(const char *name)
{
	struct stepmark_page *page = stepmark_locked_page();
	uint32_t id = page ? stepmark_name_id(page->kinds, &page->header.nr_kinds, STEPMARK_KINDS,
					      &page->header.lost_kinds_full, name)
			   : 0;

	stepmark_unlock();
	return id;
}

/* The id of a tenant, likewise. */
static inline uint32_t stepmark_tenant(const char *name)
{
	struct stepmark_page *page = stepmark_locked_page();
	uint32_t id =
		page ? stepmark_name_id(page->tenants, &page->header.nr_tenants, STEPMARK_TENANTS,
					&page->header.lost_tenants_full, name)
		     : 0;

	stepmark_unlock();
	return id;
}

/* Slots */

static inline int stepmark_slot_is_free(const struct stepmark_slot *slot, uint32_t tid)
{
	return slot->tid == 0 || slot->tid == tid ||
	       (syscall(SYS_tgkill, getpid(), slot->tid, 0) && errno == ESRCH);
}

/* Begin to write the thread's next mark, and tell its time. From here on the thread is seen to be
 * writing it: what it loses when it is interrupted now is not taken for the step before. */
static inline uint64_t stepmark_announce(struct stepmark_slot *slot)
{
	__atomic_store_n(&slot->seq, slot->seq + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* seq before the rest */
	return stepmark_now_ns();
}

/* Make this the thread's current mark, which it has announced. */
static inline void stepmark_show(struct stepmark_slot *slot, uint64_t number, uint64_t now,
				 uint32_t kind, uint32_t tenant)
{
	slot->step = number;
	slot->since_ns = now;
	slot->kind = kind;
	slot->tenant = tenant;
	__atomic_store_n(&slot->seq_end, slot->seq, __ATOMIC_RELEASE);
}

static inline void stepmark_take_slot(struct stepmark_page *page, uint32_t index, uint32_t tid)
{
	struct stepmark_thread *thread = &stepmark_the_thread;

	thread->slot = &page->slots[index];
	thread->ring = page->rings[index];
	if (thread->slot->seq) /* its last thread may have died inside a step */
		stepmark_show(thread->slot, 0, stepmark_announce(thread->slot), 0, 0);
	/* Numbers go on where that thread ended: it used at most one a mark. */
	thread->number = thread->slot->seq;
	__atomic_store_n(&thread->slot->tid, tid, __ATOMIC_RELEASE);
}

__attribute__((noinline, cold, unused)) static void stepmark_attach(void)
{
	struct stepmark_page *page = stepmark_locked_page();
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	uint32_t probe;

	stepmark_the_thread.attached = 1;
	for (probe = 0; page && probe < STEPMARK_PROBES; probe++) {
		uint32_t index = (tid + probe) % STEPMARK_SLOTS;

		if (stepmark_slot_is_free(&page->slots[index], tid)) {
			stepmark_take_slot(page, index, tid);
			break;
		}
	}
	if (page && !stepmark_the_thread.slot)
		page->header.lost_slots_full++;
	stepmark_unlock();
}

/* The calling thread's state; NULL when its marks go nowhere. */
static inline struct stepmark_thread *stepmark_this_thread(void)
{
	struct stepmark_thread *thread = &stepmark_the_thread;

	if (__builtin_expect(!thread->attached, 0))
		stepmark_attach();
	return thread->slot ? thread : NULL;
}

/* Steps */

static inline void stepmark_finish(struct stepmark_thread *thread, const struct stepmark_open *what,
				   uint64_t parent, uint64_t end_ns, uint32_t kind_of_mark)
{
	uint64_t finished = thread->slot->finished;
	struct stepmark_done *done = &thread->ring[finished % STEPMARK_RING];

	__atomic_store_n(&done->number, what->number, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE); /* number before the rest */
	done->parent = parent;
	done->begin_ns = what->begin_ns;
	done->end_ns = end_ns;
	done->what = kind_of_mark;
	done->kind = what->kind;
	done->nr_shares = what->nr_shares;
	memcpy(done->shares, what->shares, sizeof(done->shares));
	__atomic_store_n(&done->number_end, what->number, __ATOMIC_RELEASE);
	__atomic_store_n(&thread->slot->finished, finished + 1, __ATOMIC_RELEASE);
}

/* A new innermost step; NULL when the thread is too deep in stages to tell it apart. */
static inline struct stepmark_open *stepmark_push(struct stepmark_thread *thread, uint32_t kind,
						  uint64_t now)
{
	struct stepmark_open *open;

	if (thread->depth++ >= STEPMARK_DEPTH)
		return NULL;
	open = &thread->open[thread->depth - 1];
	open->number = ++thread->number;
	open->begin_ns = now;
	open->kind = kind;
	open->nr_shares = 0;
	return open;
}

/* Make a step, or none, the thread's current mark. */
static inline void stepmark_show_open(struct stepmark_thread *thread,
				      const struct stepmark_open *open, uint64_t now)
{
	if (open)
		stepmark_show(thread->slot, open->number, now, open->kind,
			      open->nr_shares ? open->shares[0].tenant : 0);
	else
		stepmark_show(thread->slot, 0, now, 0, 0);
}

/* The innermost step that is told apart; NULL outside of steps. */
static inline struct stepmark_open *stepmark_innermost(struct stepmark_thread *thread)
{
	uint32_t depth = thread->depth < STEPMARK_DEPTH ? thread->depth : STEPMARK_DEPTH;

	return depth ? &thread->open[depth - 1] : NULL;
}

static inline void stepmark_begin_at(struct stepmark_thread *thread, uint32_t kind, uint32_t tenant,
				     uint64_t now)
{
	struct stepmark_open *open = stepmark_push(thread, kind, now);

	if (open && tenant) {
		open->nr_shares = 1;
		open->shares[0].tenant = tenant;
		open->shares[0].weight = 1;
	} else if (open && thread->depth > 1) { /* a stage serves whom its step serves */
		open->nr_shares = open[-1].nr_shares;
		memcpy(open->shares, open[-1].shares, sizeof(open->shares));
	}
	stepmark_show_open(thread, stepmark_innermost(thread), now);
}

/* Finish the innermost step or stage; what is then innermost is still to be shown. */
static inline void stepmark_close_at(struct stepmark_thread *thread, uint64_t now)
{
	if (--thread->depth >= STEPMARK_DEPTH)
		return;
	if (thread->depth < thread->tick)
		thread->tick = 0;
	stepmark_finish(thread, &thread->open[thread->depth],
			thread->depth ? thread->open[thread->depth - 1].number : 0, now,
			STEPMARK_STEP);
}

/* Begin a step, or inside a step a stage. tenant 0: nobody, or those of the step around it. */
static inline void stepmark_begin(uint32_t kind, uint32_t tenant)
{
	struct stepmark_thread *thread = stepmark_this_thread();

	if (thread)
		stepmark_begin_at(thread, kind, tenant, stepmark_announce(thread->slot));
}

/* Begin a step that serves n tenants by weight. Weights are above 0; the 8 largest are kept. */
static inline void stepmark_begin_shares(uint32_t kind, const struct stepmark_share *shares,
					 uint32_t n)
{
	struct stepmark_thread *thread = stepmark_this_thread();
	struct stepmark_open *open;
	uint32_t i, at;
	uint64_t now;

	if (!thread)
		return;
	now = stepmark_announce(thread->slot);
	open = stepmark_push(thread, kind, now);
	for (i = 0; open && i < n; i++) { /* insert, largest first */
		for (at = open->nr_shares; at && open->shares[at - 1].weight < shares[i].weight;
		     at--) {
			if (at < STEPMARK_SHARES)
				open->shares[at] = open->shares[at - 1];
		}
		if (at < STEPMARK_SHARES)
			open->shares[at] = shares[i];
		if (open->nr_shares < STEPMARK_SHARES)
			open->nr_shares++;
	}
	if (n > STEPMARK_SHARES)
		__atomic_fetch_add(&stepmark_the_process.page->header.lost_shares_full,
				   n - STEPMARK_SHARES, __ATOMIC_RELAXED);
	stepmark_show_open(thread, stepmark_innermost(thread), now);
}

/* End the innermost open step or stage. */
static inline void stepmark_end(void)
{
	struct stepmark_thread *thread = &stepmark_the_thread;

	uint64_t now;

	if (!thread->depth)
		return;
	now = stepmark_announce(thread->slot);
	stepmark_close_at(thread, now);
	stepmark_show_open(thread, stepmark_innermost(thread), now);
}

static inline void stepmark_tock_at(struct stepmark_thread *thread, uint64_t now)
{
	uint32_t tick = thread->tick;

	while (tick && thread->depth >= tick)
		stepmark_close_at(thread, now);
}

/* End the step that this thread's last tick began, and begin the next at the same instant: for
 * loops in which a step lasts from one output to the next. */
static inline void stepmark_tick(uint32_t kind, uint32_t tenant)
{
	struct stepmark_thread *thread = stepmark_this_thread();
	uint64_t now;

	if (!thread)
		return;
	now = stepmark_announce(thread->slot);
	stepmark_tock_at(thread, now);
	stepmark_begin_at(thread, kind, tenant, now);
	thread->tick = thread->depth;
}

/* End the step that this thread's last tick began. */
static inline void stepmark_tock(void)
{
	struct stepmark_thread *thread = &stepmark_the_thread;
	uint64_t now;

	if (!thread->tick)
		return;
	now = stepmark_announce(thread->slot);
	stepmark_tock_at(thread, now);
	stepmark_show_open(thread, stepmark_innermost(thread), now);
}

/* A request of this tenant waited from since_ns (of stepmark_now_ns) until now. */
static inline void stepmark_queued(uint64_t since_ns, uint32_t tenant)
{
	struct stepmark_thread *thread = stepmark_this_thread();
	struct stepmark_open wait = {0, since_ns, 0, 1, {{tenant, 1}}};

	if (thread)
		stepmark_finish(thread, &wait, 0, stepmark_now_ns(), STEPMARK_QUEUED);
}

#ifdef __cplusplus
} /* extern "C" */

namespace stepmark
{
/* A step or stage that ends with its scope. */
class step
{
      public:
	explicit step(uint32_t kind, uint32_t tenant = 0)
	{
		stepmark_begin(kind, tenant);
	}
	~step()
	{
		stepmark_end();
	}
	step(const step &) = delete;
	step &operator=(const step &) = delete;
};
} // namespace stepmark
#endif

#endif
