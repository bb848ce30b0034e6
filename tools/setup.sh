#!/usr/bin/env bash
# Gets what the project needs, once, into a cache outside the checkout: Node, npm packages, the Kubernetes control plane, the
# local AWS and its EKS authenticator. Without arguments everything; else the named parts. What is there already costs nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${LANYARD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lanyard}
node_version=$(cat .node-version)
kube_version=$(cat tools/control-plane/version)
authenticator_version=$(sed -n 's|.*sigs.k8s.io/aws-iam-authenticator v\([0-9.]*\).*|\1|p' tools/aws-iam-authenticator/go.mod)
mkdir -p "$cache"

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
need() { command -v "$1" >/dev/null || fail "$1 is missing: $2"; }

# Makes a folder of the cache complete or not at all, so that an interrupted set-up leaves nothing half done.
into() {
  local folder=$1 make=$2 tmp
  [ -d "$folder" ] && return
  tmp=$(mktemp -d "$cache/.tmp.XXXXXX")
  trap 'rm -rf "$tmp"' EXIT
  "$make" "$tmp"
  if ! mv -T "$tmp" "$folder" 2>/dev/null; then rm -rf "$tmp"; fi # somebody else was quicker
  trap - EXIT
}

get_node() {
  local platform package
  platform=$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
  package=node-$platform@$node_version
  mkdir -p "$1/bin"
  if command -v node >/dev/null && [ "$(node --version)" = "v$node_version" ]; then
    cp -L "$(command -v node)" "$1/bin/node"
    return
  fi
  need npm "install Node.js 20 or newer, which brings it (Debian: apt-get install nodejs npm)"
  say "Node $node_version: fetching $package from npm (about 60 MB)"
  (cd "$1" && npm pack --silent "$package" >/dev/null && tar xzf ./*.tgz && mv package/bin/node bin/node && rm -rf ./*.tgz package) ||
    fail "could not get $package: check that npm reaches its registry, or install Node $node_version yourself"
}

get_control_plane() {
  need go "install Go 1.26 or newer"
  say "Kubernetes $kube_version: building etcd, kube-apiserver, kube-controller-manager and kubectl with Go (about 8 minutes on 2 cores, once)"
  (
    cd tools/control-plane
    # The version must be set, else kubectl cannot parse what the API server says of itself.
    GOFLAGS='' GOBIN='' go build -v -trimpath -buildvcs=false \
      -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$kube_version" -o "$1/" \
      k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl \
      go.etcd.io/etcd/server/v3 2> >(awk \
        '/^(go: |#|.*: )/ && !/downloading/ {print "setup:   " $0} {n++} n % 200 == 0 {printf "setup:   %d packages done\n", n} {fflush()}' >&2)
  ) || fail "the build failed: see above; check Go's version (go version) and that its module proxy is reached"
  mv "$1/server" "$1/etcd" 2>/dev/null || mv "$1/v3" "$1/etcd"
  say "Kubernetes $kube_version is built"
}

get_authenticator() {
  need go "install Go 1.26 or newer"
  say "aws-iam-authenticator $authenticator_version: building with Go (about 3 minutes on 2 cores, once)"
  (
    cd tools/aws-iam-authenticator
    GOFLAGS='' GOBIN='' go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$1/" sigs.k8s.io/aws-iam-authenticator/cmd/aws-iam-authenticator
  ) || fail "the build failed: see above; check Go's version (go version) and that its module proxy is reached"
}

# In its final place at once: a Python environment knows its own path. The marker says that it is complete.
local_aws() {
  local folder=$1
  [ -e "$folder/complete" ] && return
  need python3 "install Python 3.10 or newer"
  say "local AWS: creating a Python environment"
  rm -rf "$folder"
  python3 -m venv "$folder" || fail "python3 has no venv module (Debian: apt-get install python3-venv)"
  "$folder/bin/pip" install --quiet --disable-pip-version-check -r tools/local-aws/requirements.txt ||
    fail "pip could not install tools/local-aws/requirements.txt: check that it reaches its index"
  touch "$folder/complete"
}

packages() {
  local lock=node_modules/.lanyard-lock
  if ! cmp -s package-lock.json "$lock"; then
    need npm "install Node.js 20 or newer, which brings it"
    say "npm packages: installing"
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json "$lock"
  fi
}

# The tests ask it whether our certificates are good.
[ $# -gt 0 ] || need openssl "install it (Debian: apt-get install openssl)"
parts=${*:-node packages control-plane local-aws authenticator}
for part in $parts; do
  case $part in
    node) into "$cache/node-$node_version" get_node ;;
    packages) PATH="$cache/node-$node_version/bin:$PATH" packages ;;
    control-plane) [ -n "${KUBEBUILDER_ASSETS:-}" ] || into "$cache/control-plane-$kube_version" get_control_plane ;;
    local-aws) local_aws "$cache/local-aws-$(sha256sum tools/local-aws/requirements.txt | cut -c1-12)" ;;
    authenticator) into "$cache/aws-iam-authenticator-$authenticator_version" get_authenticator ;;
    *) fail "there is no part $part; there are node, packages, control-plane, local-aws and authenticator" ;;
  esac
done
