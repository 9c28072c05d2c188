#!/bin/bash
# Build the image without daemon and registry, on a base made of Debian's packages.
#
#   deploy/build-image.sh [SUITE]     bookworm when not given
#
# Needs root, and buildah and debootstrap. The result is `tailtrace` in the container storage
# build/image/storage and, for `docker load` or `podman load`, build/image/tailtrace.tar. It is not
# for publishing: its base names this machine's mirror as the source of packages.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:-bookworm}
work=$PWD/build/image
mkdir -p "$work"

buildah() {
	BUILDAH_ISOLATION=chroot nice -n 19 buildah --storage-driver overlay \
		--root "$work/storage" --runroot "$work/run" "$@"
}

# Debian as the base image debian:SUITE-slim, from the mirror that this machine uses.
make_base() {
	local mirror container
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian')
	nice -n 19 debootstrap --variant=minbase "$suite" "$work/base" "${mirror%%$'\n'*}" \
		>"$work/debootstrap.log" || { tail -n 3 "$work/debootstrap.log" >&2 && return 1; }
	rm -rf "$work"/base/{usr/share/{doc,locale,man},var/{cache/apt,lib/apt/lists}}/*
	container=$(buildah from scratch)
	buildah add --quiet "$container" "$work/base" / >/dev/null
	buildah commit --quiet --rm "$container" "debian:$suite-slim" >/dev/null
	rm -rf "$work/base"
}

# Where pip and npm find packages on this machine, and whom they trust: secrets of the build.
pip_settings() {
	echo '[global]'
	pip config list | sed -nE "s/^(:env:|global)\.(index-url|trusted-host)='(.*)'$/\2 = \3/p"
}

settings=$(mktemp -d)
trap 'rm -rf "$settings"' EXIT
pip_settings >"$settings/pip.conf"
echo "registry=$(.venv/bin/npm config get registry)" >"$settings/npmrc"
certificates=$(pip config get global.cert 2>/dev/null || echo /etc/ssl/certs/ca-certificates.crt)

buildah inspect --type image "debian:$suite-slim" >/dev/null 2>&1 || make_base
buildah build --quiet --pull-never --format docker --build-arg "DEBIAN=$suite-slim" --tag tailtrace \
	--secret "id=pip.conf,src=$settings/pip.conf" --secret "id=npmrc,src=$settings/npmrc" \
	--secret "id=ca.crt,src=$certificates" .
buildah rmi --prune >/dev/null # the image that had the name before
rm -f "$work/tailtrace.tar"
buildah push --quiet tailtrace "docker-archive:$work/tailtrace.tar:tailtrace:latest"
