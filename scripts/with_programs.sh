#!/usr/bin/env bash
# Runs a command with the path of a Chromium in BARA_TEST_CHROMIUM and with LaTeX. Installs both from Debian's packages where
# they are missing.
set -euo pipefail

missing=()
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
command -v pdflatex >/dev/null || missing+=(texlive-latex-base texlive-latex-recommended)
if [ ${#missing[@]} -gt 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
BARA_TEST_CHROMIUM=$(command -v chromium)
export BARA_TEST_CHROMIUM
"$@"
