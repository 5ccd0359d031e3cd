#!/bin/sh
# A headless Chromium for tests/browser, from Debian's packages, where root may install them. Says what it did; without
# one the tests are skipped, so this never fails.
for name in "${CHROMIUM:-}" chromium-headless-shell chromium chromium-browser google-chrome; do
  if [ -n "$name" ] && found=$(command -v "$name"); then
    echo "browser: $found"
    exit 0
  fi
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "browser: none here, and only root on a system with apt-get can install one: tests/browser will be skipped"
  exit 0
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
fi
