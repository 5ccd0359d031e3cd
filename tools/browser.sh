#!/bin/sh
# Usage: tools/browser.sh PIP...     (`make browser`; PIP: the command that installs into the environment)
#
# What tests/browser needs: a headless Chromium, from Debian's packages, where root may install them; Playwright, which
# drives it, by requirements/browser.txt; and axe-core, which looks for what keeps people from using a page, from npm. Says
# what it did; what isn't there is skipped, so this never fails.
axe=axe-core-4.14.1
axe_sha256=e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745

browser() {
  for name in "${CHROMIUM:-}" chromium-headless-shell chromium chromium-browser google-chrome; do
    if [ -n "$name" ] && found=$(command -v "$name"); then
      echo "browser: $found"
      return
    fi
  done
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "browser: none here, and only root on a system with apt-get can install one: tests/browser will be skipped"
    return 1
  fi
  echo "browser: installing chromium-headless-shell and a font"
  update="timeout 60 apt-get update -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20"
  install="timeout 240 apt-get install -qq -y --no-install-recommends chromium-headless-shell fonts-dejavu-core"
  export DEBIAN_FRONTEND=noninteractive
  if said=$( ($update && $install) 2>&1 </dev/null); then
    echo "browser: $(command -v chromium-headless-shell)"
  else
    echo "$said" | tail -n 3
    echo "browser: apt-get could not install one: tests/browser will be skipped"
    return 1
  fi
}

playwright() {
  if said=$(timeout 240 "$@" install --require-hashes -r requirements/browser.txt 2>&1 </dev/null); then
    echo "browser: $(sed -n 's/^\(playwright==[^ ]*\).*/\1/p' requirements/browser.txt)"
  else
    echo "$said" | tail -n 3
    echo "browser: pip could not install Playwright: tests/browser will be skipped"
  fi
}

axe_core() {
  if [ -f "build/$axe/axe.min.js" ]; then
    echo "browser: build/$axe"
    return
  fi
  if ! command -v npm >/dev/null; then
    echo "browser: no npm, so no axe-core: its tests will be skipped"
    return
  fi
  mkdir -p build && folder=$(mktemp -d build/axe.XXXXXX) || return
  if said=$(cd "$folder" && timeout 60 npm pack --silent "$(echo "$axe" | sed 's/-\([0-9]\)/@\1/')" 2>&1 </dev/null) &&
    echo "$axe_sha256  $folder/$axe.tgz" | sha256sum --check --quiet && tar -xzf "$folder/$axe.tgz" -C "$folder"; then
    rm -rf "build/$axe" && mv "$folder/package" "build/$axe" && echo "browser: build/$axe"
  else
    echo "$said" | tail -n 3
    echo "browser: npm could not get axe-core, or another one: its tests will be skipped"
  fi
  rm -rf "$folder"
}

if browser; then
  playwright "$@"
fi
axe_core
