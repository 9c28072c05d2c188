#!/bin/bash
# Build the image from the Dockerfile without daemon or registry, on a base made of Debian packages.
#
# Needs root and, of Debian: buildah debootstrap. The result is `tailtrace` in the storage below
# build/image (`deploy/podman.sh images`) and, for `docker load`, build/image/tailtrace.tar.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:-bookworm}
work=build/image
mkdir -p "$work"

export BUILDAH_ISOLATION=chroot
buildah() {
	nice -n 19 /usr/bin/buildah --root "$PWD/$work/storage" --runroot "$PWD/$work/run" \
		--storage-driver "${STORAGE_DRIVER:-overlay}" "$@"
}

# Debian as the base image debian:SUITE-slim, from the mirror that this machine is configured with.
make_base() {
	local mirror container
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -1)
	debootstrap --variant=minbase "$suite" "$work/base" "$mirror" >"$work/debootstrap.log" ||
		{ tail -3 "$work/debootstrap.log" >&2 && return 1; }
	rm -rf "$work"/base/var/{cache/apt,lib/apt/lists}/*
	container=$(buildah from scratch)
	buildah add --quiet "$container" "$work/base" / >/dev/null
	buildah commit --quiet --rm "$container" "debian:$suite-slim" >/dev/null
	rm -rf "$work/base"
}

# Where pip finds packages on this machine, and whom it trusts there.
pip_settings() {
	echo '[global]'
	pip config list | sed -nE "s/^(:env:|global)\.(index-url|trusted-host|default-timeout)='(.*)'$/\2 = \3/p"
}

certificates=$(pip config get global.cert 2>/dev/null || echo /etc/ssl/certs/ca-certificates.crt)
settings=$(mktemp)
trap 'rm -f "$settings"' EXIT
pip_settings >"$settings"

buildah images --quiet "debian:$suite-slim" >/dev/null 2>&1 || make_base
buildah build --quiet --pull-never --format docker --build-arg "DEBIAN=$suite-slim" \
	--secret "id=pip.conf,src=$settings" --secret "id=ca.crt,src=$certificates" --tag tailtrace .
rm -f "$work/tailtrace.tar"
buildah push --quiet tailtrace "docker-archive:$work/tailtrace.tar:tailtrace:latest"
