#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds everything, compiles the update of a small transformer's training step,
# and trains with the compiled step. The step is that of a ds_config.json, and the
# training is killed and resumed; or it is the step that the model writes.
set -euo pipefail

usage() {
  cat <<USAGE
usage: demo.sh [OPTION...]
The step is that of a configuration of DeepSpeed. The training is killed behind its first
checkpoint, and resumed.
  --config FILE   the configuration (examples/transformer/ds_config.json). Betas, eps, weight
                  decay and clipping are checked against those of that file

With one of --mesh, --stage, --precision and --offload the step is the one that the model
writes. This step takes the learning rate from the model, and nothing is killed.
  --mesh AXES     pipeline stages and data-parallel copies, such as pp=2,dp=2 (dp=4)
  --stage S       ZeRO stage: 0, 1, 2 or 3 (2)
  --precision P   type of gradients: bf16, f32, or fp16 with a loss scale (bf16)
  --offload WHAT  in host memory: none, optimizer or, at stage 3, parameters (optimizer)

  --check-preconditions  the runtime checks the preconditions of the proof
  --quick         300 steps: less than a minute after the build
  --accumulation N   backward passes per step (4)
  --gpus N        GPUs that the ranks' steps are on, in turn. The model stays on the processor
  --threads N     threads per rank (cores / ranks)
  --steps N       number of steps (1000, a minute or two)
  --text FILE     training text (default: /usr/share/common-licenses/*)
USAGE
}

wrong() {
  echo "demo.sh: $1" >&2
  usage >&2
  exit 2
}

mesh=dp=4
stage=2
offload=optimizer
precision=bf16
config=
own= # an option of the step that the model writes
text=()
train=()
target=()
quick=
steps=1000
while [[ $# -gt 0 ]]; do
  case $1 in
  --help | -h) usage; exit 0 ;;
  --quick) quick=1; steps=300; train+=("$1"); shift; continue ;;
  --check-preconditions) train+=("$1"); shift; continue ;;
  --config | --mesh | --accumulation | --threads | --gpus | --steps | --stage | --offload | --text | --precision) ;;
  *) wrong "unknown option '$1'" ;;
  esac
  [[ $# -ge 2 ]] || wrong "$1 takes a value"
  case $1 in
  --mesh | --stage | --offload | --precision) own=$1 ;;
  esac
  case $1 in
  --config)
    [[ -r $2 ]] || wrong "cannot read '$2'"
    config=$(realpath -- "$2")
    ;;
  --mesh) mesh=$2 ;;
  --accumulation | --threads | --steps | --gpus)
    [[ $2 =~ ^[1-9][0-9]*$ ]] || wrong "$1 takes a number, not '$2'"
    [[ $1 != --steps ]] || steps=$2
    [[ $1 != --gpus ]] || target=(--target=cuda)
    train+=("$1" "$2")
    ;;
  --stage) stage=$2 ;;
  --offload) offload=$2 ;;
  --precision) precision=$2 ;;
  # The path is relative to the caller's folder; the script changes the folder below.
  --text)
    [[ -r $2 ]] || wrong "cannot read '$2'"
    text=(--text "$(realpath -- "$2")")
    ;;
  esac
  shift 2
done
[[ -z $config || -z $own ]] ||
  wrong "--config has the step, and $own is of the step that the model writes"
axis='(pp|dp)=[1-9][0-9]*'
[[ $mesh =~ ^$axis(,$axis)?$ ]] ||
  wrong "--mesh takes sizes such as dp=4 or pp=2,dp=2, not '$mesh'"
[[ $stage =~ ^[0-3]$ ]] || wrong "--stage takes 0, 1, 2 or 3, not '$stage'"
[[ $offload =~ ^(none|optimizer|parameters)$ ]] ||
  wrong "--offload takes none, optimizer or parameters, not '$offload'"
[[ $offload != parameters || $stage -eq 3 ]] ||
  wrong "--offload parameters is for --stage 3, not $stage"
[[ $precision =~ ^(bf16|fp16|f32)$ ]] ||
  wrong "--precision takes bf16, fp16 or f32, not '$precision'"

cd "$(dirname "$0")/../.."
echo "== build"
bash tools/scripts/setup.sh
bash tools/scripts/build.sh build -- char_model zero-compile zero_rt

out=build/demo
mkdir -p "$out"

if [[ -n $own ]]; then
  echo "== the step as the model writes it: $out/step.mlir"
  units=()
  flags=("--stage=$stage" "--offload=$offload" "${target[@]}")
  if [[ $stage -eq 3 ]]; then
    units=(--units)
    flags+=(--unit-order=declared) # a model uses its layers in one order
  fi
  build/bin/char_model --emit-step "${units[@]}" --mesh "$mesh" \
    --precision "$precision" "${text[@]}" >"$out/step.mlir"
  echo "== zero-compile $out/step.mlir -o $out ${flags[*]}"
  build/bin/zero-compile "$out/step.mlir" -o "$out" "${flags[@]}" --print-plan
  echo "== training"
  exec build/bin/char_model --library "$out/libtrain.so" --mesh "$mesh" \
    --precision "$precision" "${text[@]}" "${train[@]}"
fi

config=${config:-examples/transformer/ds_config.json}
echo "== the parameters of the model: $out/model.json"
build/bin/char_model --list-parameters --units "${text[@]}" >"$out/model.json"
flags=("--import-deepspeed=$config" "--model=$out/model.json" "--mesh=$mesh" --no-decay=1d "${target[@]}")
if [[ -n $quick ]]; then
  params=scheduler.params
  flags+=("--set=$params.total_num_steps=300" "--set=$params.warmup_num_steps=30")
fi
echo "== zero-compile ${flags[*]} -o $out"
build/bin/zero-compile "${flags[@]}" -o "$out" --print-plan
rm -rf "$out/checkpoint"
train+=(--library "$out/libtrain.so" --mesh "$mesh" --imported --precision f32
  --save "$out/checkpoint" --save-every "$((steps < 6 ? 1 : steps / 6))" "${text[@]}")
echo "== training, which is killed behind its first checkpoint"
build/bin/char_model "${train[@]}" &
training=$!
trap 'kill -KILL $training 2>/dev/null || true' EXIT
while [[ ! -e $out/checkpoint/checkpoint.json ]] && kill -0 $training 2>/dev/null; do
  sleep 0.1
done
kill -KILL $training 2>/dev/null || true
status=0
wait $training 2>/dev/null || status=$?
trap - EXIT
# 137: killed. Otherwise it has failed, and says why, or it was faster.
[[ $status -eq 137 && -e $out/checkpoint/checkpoint.json ]] || exit "$status"
echo "== killed; the training goes on from $out/checkpoint"
exec build/bin/char_model "${train[@]}" --resume
