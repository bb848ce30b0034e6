#!/bin/bash
# Sees to it that nothing is left behind. A test process starts one of these and talks to its standard input:
#   folder PATH   everything started for PATH belongs to the test process
#   done PATH     it has been cleaned up
# When the test process ends, however it ends, the input ends too; then what is still there is removed: every process with
# LANYARD_KEEPER=PATH in its environment (children inherit it, so grandchildren are found, and a reused pid is not), and PATH.
trap '' INT TERM HUP
declare -A folders

while read -r verb path; do
  case "$verb" in
    folder) folders["$path"]=1 ;;
    done) unset 'folders[$path]' ;;
  esac
done

processes_of() { # by the exact variable: a shell that merely mentions the folder is somebody else's
  grep -lzxF "LANYARD_KEEPER=$1" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3
}

for path in "${!folders[@]}"; do
  # a child between fork and exec does not carry the variable yet: only two quiet looks in a row are enough
  quiet=0
  for _ in {1..50}; do
    pids=$(processes_of "$path")
    if [[ -n $pids ]]; then
      quiet=0
      kill -KILL $pids 2>/dev/null
    elif ((++quiet == 2)); then
      break
    fi
    sleep 0.1
  done
  [[ ${path##*/} == lanyard-* ]] && rm -rf -- "$path"
done
