# The agent in a slim Debian, without compiler and pip.
#
#   make image                         here, from a locally made Debian, without a registry
#   docker build -t tailtrace .        anywhere else
#
# A build whose package indexes need settings passes them as the secrets `pip.conf`, `npmrc` and
# `ca.crt`: they are there while pip and npm run and in no layer.
ARG DEBIAN=bookworm-slim

FROM debian:${DEBIAN} AS bpf
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	clang llvm libbpf-dev linux-libc-dev make && rm -rf /var/cache/apt /var/lib/apt/lists
WORKDIR /src
COPY Makefile ./
COPY bpf bpf
COPY stepmark/stepmark/include stepmark/stepmark/include
# -o: what the target would install for development is not needed here.
RUN make -o build/.system bpf

FROM debian:${DEBIAN} AS agent
ARG DEBIAN_FRONTEND=noninteractive
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	ca-certificates make python3-pip python3-venv && rm -rf /var/cache/apt /var/lib/apt/lists
WORKDIR /src
COPY Makefile pyproject.toml README.md ./
COPY exporters/page/package.json exporters/page/package-lock.json exporters/page/
# -o: what is there for development is not needed here, npm is.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
	--mount=type=secret,id=npmrc,target=/root/.npmrc \
	--mount=type=secret,id=ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
	export NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt && python3 -m venv .venv && \
	.venv/bin/pip install --quiet --no-cache-dir --upgrade 'pip>=25.1' && \
	.venv/bin/pip install --quiet --no-cache-dir --group page --group dashboards && \
	make -o .venv/.installed page
COPY tracer tracer
COPY exporters exporters
COPY dashboards dashboards
COPY --from=bpf /src/tracer/kernel/objects tracer/kernel/objects
RUN make -o setup rules dashboards
RUN python3 -m venv --without-pip /opt/tailtrace
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf \
	--mount=type=secret,id=ca.crt,target=/etc/ssl/certs/ca-certificates.crt \
	pip --python /opt/tailtrace/bin/python install --quiet --no-cache-dir .

FROM debian:${DEBIAN}
ARG DEBIAN_FRONTEND=noninteractive
LABEL org.opencontainers.image.title="tailtrace" \
	org.opencontainers.image.description="Continuous latency tracer for inference nodes" \
	org.opencontainers.image.licenses="Apache-2.0 AND GPL-2.0-only"
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends \
	libbpf1 python3 && rm -rf /var/cache/apt /var/lib/apt/lists
COPY --from=agent /opt/tailtrace /opt/tailtrace
ENV PATH=/opt/tailtrace/bin:$PATH
# Root, because Kubernetes gives capabilities to no other user: it sets no ambient ones, and
# allowPrivilegeEscalation: false makes the kernel ignore those of files. What root may do is what
# its capabilities say, see docs/kubernetes.md.
USER 0:0
EXPOSE 9435
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s CMD ["python3", "-c", \
	"from urllib.request import urlopen; urlopen('http://127.0.0.1:9435/healthz', timeout=4)"]
ENTRYPOINT ["tailtrace"]
CMD ["run", "--quiet"]
