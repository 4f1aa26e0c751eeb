#!/usr/bin/env bash
# Runs a command with the path of a Chromium in BARA_TEST_CHROMIUM. Installs it from Debian's packages where it is missing.
set -euo pipefail

if ! command -v chromium >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
BARA_TEST_CHROMIUM=$(command -v chromium)
export BARA_TEST_CHROMIUM
"$@"
