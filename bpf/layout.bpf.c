// SPDX-License-Identifier: GPL-2.0-only
/* layout.bpf.c - never loaded. It names each type that crosses, because a type used only through a
 * ring buffer's pointer or a cast is absent from the debug information of the object that uses it.
 */
#include "wire.h"

struct stepmark_page *stepmark_page;
struct stepmark_header *stepmark_header;
struct stepmark_name *stepmark_name;
struct stepmark_slot *stepmark_slot;
struct stepmark_done *stepmark_done;
struct piece *piece;
struct outlier *outlier;
struct stall *stall;
struct pulse *pulse;
struct toucher *toucher;
struct touched *touched;
struct process *process;
enum cause cause;
enum event event;
enum lost lost;
enum limits limits;
enum stepmark_limits stepmark_limits;
enum stepmark_what stepmark_what;
