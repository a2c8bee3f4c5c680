#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Compiles steps and runs them on this machine's GPU: compares every optimizer and type,
# ZeRO stages, offload and several ranks with the processor, bit by bit, times steps
# against copies and PyTorch, tries NCCL, and looks at memory with compute-sanitizer
# (test/gpu/check.py, which is copied to the folder).
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<USAGE
usage: gpu-check.sh [OPTION...] [FOLDER [PIECE...]]
  FOLDER         folder of the programs and the steps (default build/gpu-check); the
                 script makes a missing folder
  PIECE          a piece that FOLDER/run.sh --help lists (default: all)
  --make         only make FOLDER, for a machine without compilers. That machine needs
                 a driver, Python and FOLDER, and runs FOLDER/run.sh [PIECE...]
  --arch ARCH    GPU of the machine code of all steps but one (default sm_90)
  --build DIR    build folder of the programs (default build, which is built first)
  --device WHAT  cuda (default), or host: compares the processor with itself
  --gpus N,...   GPUs that ranks take in turn (default 0); the first is timed
  --elements N   elements of the timed steps (default 134217728)
USAGE
}

wrong() {
  echo "gpu-check.sh: $1" >&2
  usage >&2
  exit 2
}

folder=
build=
device=cuda
make=0
elements=
gpus=0
arch=sm_90
pieces=()
while [[ $# -gt 0 ]]; do
  case $1 in
  --help | -h) usage; exit 0 ;;
  --make) make=1 ;;
  --arch | --build | --device | --elements | --gpus)
    [[ $# -gt 1 ]] || wrong "$1 needs a value"
    case $1 in
    --arch) arch=$2 ;;
    --build) build=$2 ;;
    --device) device=$2 ;;
    --elements) elements=$2 ;;
    --gpus) gpus=$2 ;;
    esac
    shift
    ;;
  -*) wrong "unknown option '$1'" ;;
  *)
    if [[ -z $folder ]]; then folder=$1; else pieces+=("$1"); fi
    ;;
  esac
  shift
done
[[ $device == cuda || $device == host ]] || wrong "--device must be cuda or host"
[[ -z $elements || $elements =~ ^[2-9][0-9]{4}$ || $elements =~ ^[1-9][0-9]{5,9}$ ]] ||
  wrong "--elements must be a number from 20000 on"
folder=${folder:-build/gpu-check}

# Machine code, so that not every step waits for the driver to compile it.
target=cuda:$arch
if ! command -v ptxas >/dev/null && [[ ! -x ${CUDA_HOME:-/usr/local/cuda}/bin/ptxas ]]; then
  target=cuda
  [[ $make -eq 0 ]] || echo "no ptxas: all steps are PTX, which the driver compiles"
fi

# compile NAME STEP OPTION...: FOLDER/NAME/libNAME.so
compile() {
  local name=$1 step=$2
  shift 2
  "$build/bin/zero-compile" "$step" -o "$folder/$name" --name="$name" \
    --target="$target" --no-prove "$@" >/dev/null
}

make_step() {
  python3 tools/scripts/make_step.py --parameters=7 "$@" >"$folder/step.mlir"
}

# bench NAME PARAMETERS SIZES DTYPE OPTION...: FOLDER/bench/NAME/libNAME.so
bench() {
  local name=$1 parameters=$2 sizes=$3 dtype=$4
  shift 4
  python3 tools/scripts/make_step.py --parameters="$parameters" --sizes="$sizes" \
    --ranks=1 --groups=1 --dtype="$dtype" --gradient=f32 --accumulator=f32 \
    --optimizer examples/optimizers/adamw.mlir \
    >"$folder/step.mlir"
  "$build/bin/zero-compile" "$folder/step.mlir" -o "$folder/bench/$name" \
    --name="$name" --target="$target" --no-prove "$@" >/dev/null
}

make_bench() {
  local elements=${elements:-134217728}
  local average=$((elements / 10000))
  bench flat 1 "$elements" f32 --stage=0
  bench ragged 10000 \
    "1,$((average / 2 + 1)),$((average + 1)),$((2 * average - 1)),$((3 * average / 2 - 2))" \
    f32 --stage=0
  bench offload 16 "$((elements / 16))" bf16 --stage=1 --offload=optimizer
  bench unoffloaded 16 "$((elements / 16))" bf16 --stage=1
  cp test/gpu/*.py "$folder"
}

make_folder() {
  if [[ -z $build ]]; then
    build=build
    bash tools/scripts/build.sh build -- zero-compile gpu_check gpu_machine
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  local optimizer types dtype gradient accumulator ranks stage
  for optimizer in sgd adam adamw lion; do
    for types in "bf16 bf16 f32" "f16 f16 f32" "f32 f32 f32" "f64 f64 f64" \
      "f32 bf16 f32" "bf16 bf16 bf16"; do
      read -r dtype gradient accumulator <<<"$types"
      make_step --ranks=1 --dtype="$dtype" --gradient="$gradient" \
        --accumulator="$accumulator" \
        --optimizer "examples/optimizers/$optimizer.mlir"
      compile "${optimizer}_${types// /_}" "$folder/step.mlir" --stage=0
    done
  done
  make_step --ranks=1 --dtype=bf16 --gradient=bf16 --accumulator=f32 \
    --optimizer examples/optimizers/adamw.mlir
  compile adamw_ptx "$folder/step.mlir" --stage=0 --target=cuda
  for ranks in 2 4; do
    for stage in 0 1 2; do
      make_step --ranks="$ranks" --dtype=bf16 --gradient=bf16 --accumulator=f32 \
        --optimizer examples/optimizers/adamw.mlir
      compile "ranks${ranks}_stage$stage" "$folder/step.mlir" --stage="$stage"
      [[ $stage == 0 ]] || compile "ranks${ranks}_stage${stage}_offload" \
        "$folder/step.mlir" --stage="$stage" --offload=optimizer
    done
  done
  # Units, of which two have memory at once. The last parameter is of no unit.
  for ranks in 2 4; do
    make_step --ranks="$ranks" --units=3 --frozen=1 --dtype=bf16 --gradient=bf16 --accumulator=f32 \
      --optimizer examples/optimizers/adamw.mlir
    compile "ranks${ranks}_stage3" "$folder/step.mlir" --stage=3
    compile "ranks${ranks}_stage3_offload" "$folder/step.mlir" --stage=3 \
      --offload=optimizer
    compile "ranks${ranks}_stage3_parameters" "$folder/step.mlir" --stage=3 \
      --offload=parameters
    compile "ranks${ranks}_stage3_apply" "$folder/step.mlir" --stage=3 \
      --reduce=apply --keep-after-forward=last
  done
  # Norms of many partial sums, and of so many that their sums are summed. The second
  # bucket has the more, and gradients are others at each step.
  local large=$((${elements:-17000003} < 17000003 ? elements : 17000003))
  make_step --ranks=1 --parameters=3 --sizes="$((large / 13)),$large,5" \
    --dtype=bf16 --gradient=bf16 --accumulator=f32 \
    --optimizer examples/optimizers/sgd.mlir
  compile large "$folder/step.mlir" --stage=0 --bucket-bytes=1
  # The same in the other types. The small buckets are a piece of which the last element
  # is missing, and a whole piece and one element.
  local type
  for type in bf16 f16 f64; do
    make_step --ranks=1 --parameters=3 --sizes="4095,4097,$large" --dtype="$type" \
      --gradient="$type" --accumulator="$type" \
      --optimizer examples/optimizers/sgd.mlir
    compile "norm_$type" "$folder/step.mlir" --stage=0 --bucket-bytes=1
  done
  # More ranks than one kernel sums.
  make_step --ranks=35 --dtype=bf16 --gradient=bf16 --accumulator=bf16 \
    --optimizer examples/optimizers/sgd.mlir
  compile ranks35 "$folder/step.mlir" --stage=2
  make_step --ranks=2 --dtype=f32 --gradient=f32 --accumulator=f32 --reduce-dtype=bf16 \
    --optimizer examples/optimizers/adamw.mlir
  compile reduce_dtype "$folder/step.mlir" --stage=1
  for example in fp16 schedule; do
    compile "$example" "examples/$example.mlir" --stage=1
  done
  make_bench
  rm "$folder/step.mlir"
  cp "$build"/bin/gpu_{check,machine} "$build"/lib/libzero_rt.so "$folder"
  cat >"$folder/run.sh" <<'RUN'
#!/usr/bin/env bash
# run.sh [OPTION...] [PIECE...]: see run.sh --help
exec python3 "$(dirname "$0")/check.py" "$@"
RUN
  chmod +x "$folder/run.sh"
}

[[ $make -eq 0 && -e $folder/run.sh && -z $build$elements ]] || make_folder
[[ $make -eq 1 ]] || bash "$folder/run.sh" --device="$device" \
  --gpus="$gpus" "${pieces[@]}"
