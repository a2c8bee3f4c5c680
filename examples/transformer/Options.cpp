//===- Options.cpp - The command line of char_model -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Options.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace transformer {

namespace {

struct Number {
  const char *name;
  int64_t *value;
  int64_t least;
  int64_t most;
  const char *help;
};

} // namespace

static std::vector<Number> numbers(Options &o) {
  return {
      {"--accumulation", &o.backwards, 1, 4096, "backward passes per step"},
      {"--threads", &o.threads, 0, 256, "threads per rank; 0: cores / ranks"},
      {"--gpus", &o.gpus, 0, 256,
       "GPUs that the ranks' steps are on, in turn; the model is not"},
      {"--steps", &o.steps, 1, 1000000, "number of steps"},
      {"--save-every", &o.saveEvery, 1, 1000000, "steps between checkpoints"},
      {"--batch", &o.batch, 1, 4096, "sequences per backward pass and rank"},
      {"--seed", &o.seed, 0, INT64_MAX, "seed of initial values and batches"},
      {"--layers", &o.shape.layers, 1, 64, "blocks of attention and MLP"},
      {"--width", &o.shape.width, 1, 4096, "width of the residual stream"},
      {"--heads", &o.shape.heads, 1, 64, "attention heads; divides the width"},
      {"--context", &o.shape.context, 2, 4096, "characters of a sequence"},
  };
}

static bool parseInteger(const char *text, const Number &number) {
  char *end;
  errno = 0;
  long long value = std::strtoll(text, &end, 10);
  if (errno || end == text || *end || value < number.least ||
      value > number.most)
    return false;
  *number.value = value;
  return true;
}

static bool takeValue(const std::string &name, const char *value, Options &out,
                      std::string &error) {
  for (auto [option, path] :
       {std::pair("--library", &out.library), std::pair("--text", &out.text),
        std::pair("--losses", &out.losses), std::pair("--save", &out.save)}) {
    if (name != option)
      continue;
    *path = value ? value : "";
    if (path->empty())
      error = name + " takes the name of a file";
    return error.empty();
  }
  if (!value)
    value = "";
  if (name == "--rate") {
    char *end;
    out.rate = std::strtod(value, &end);
    if (end != value && !*end && out.rate > 0 && std::isfinite(out.rate))
      return true;
    error = "--rate takes a positive number, not '" + std::string(value) + "'";
    return false;
  }
  if (name == "--mesh") {
    if (parseMesh(value, out.mesh))
      return true;
    error = "--mesh takes the sizes of pp and dp, such as pp=2,dp=2, for at "
            "most 256 ranks, not '" +
            std::string(value) + "'";
    return false;
  }
  if (name == "--precision") {
    if (parsePrecision(value, out.precision))
      return true;
    error =
        "--precision takes bf16, fp16 or f32, not '" + std::string(value) + "'";
    return false;
  }
  for (const Number &number : numbers(out))
    if (name == number.name) {
      if (parseInteger(value, number))
        return true;
      error = name + " takes a whole number from " +
              std::to_string(number.least) + " to " +
              std::to_string(number.most) + ", not '" + value + "'";
      return false;
    }
  error = "unknown option '" + name + "'";
  return false;
}

static bool *findFlag(const std::string &name, Options &o) {
  for (auto [option, flag] :
       {std::pair("--emit-step", &o.emitStep),
        std::pair("--list-parameters", &o.listParameters),
        std::pair("--units", &o.units), std::pair("--imported", &o.imported),
        std::pair("--resume", &o.resume), std::pair("--tcp", &o.tcp),
        std::pair("--launched", &o.launched),
        std::pair("--check-preconditions", &o.checkPreconditions)})
    if (name == option)
      return flag;
  return nullptr;
}

bool parseOptions(int argc, char **argv, Options &out, std::string &error) {
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      out.help = true;
      return true;
    }
    if (bool *flag = findFlag(name, out)) {
      *flag = true;
      continue;
    }
    if (name == "--quick") {
      out.steps = 300;
      continue;
    }
    // Both --steps 9 and --steps=9.
    const char *value = i + 1 < argc ? argv[i + 1] : nullptr;
    size_t equals = name.find('=');
    bool inside = equals != std::string::npos;
    if (inside) {
      value = argv[i] + equals + 1;
      name.resize(equals);
    }
    if (!takeValue(name, value, out, error))
      return false;
    i += !inside;
  }
  if (out.shape.width % out.shape.heads) {
    error = "--heads " + std::to_string(out.shape.heads) +
            " does not divide --width " + std::to_string(out.shape.width);
    return false;
  }
  if (out.mesh.stages > out.shape.layers) {
    error = "--mesh pp=" + std::to_string(out.mesh.stages) +
            " needs as many --layers, got " + std::to_string(out.shape.layers);
    return false;
  }
  if (int(out.emitStep) + int(out.listParameters) + int(!out.library.empty()) !=
      1) {
    error = "give one of --emit-step, --list-parameters and --library";
    return false;
  }
  if (out.units && !out.library.empty()) {
    error = "--units is for --emit-step and --list-parameters; a library says "
            "itself which units it has";
    return false;
  }
  if (out.tcp && out.launched) {
    error =
        "--tcp is for ranks that are threads, and --launched for processes; "
        "leave out one of them";
    return false;
  }
  if (out.tcp && out.gpus && out.gpus < out.mesh.ranks()) {
    error = "--tcp takes a GPU for each of the " +
            std::to_string(out.mesh.ranks()) + " ranks, and --gpus is " +
            std::to_string(out.gpus) + "; leave out --tcp";
    return false;
  }
  if (out.resume && out.save.empty()) {
    error = "--resume takes the checkpoint from the folder of --save, which is "
            "missing";
    return false;
  }
  return true;
}

std::string helpText() {
  std::string text =
      R"(char_model: trains a small transformer with a compiled step

The forward and the backward pass are C++ in this program. The step has the rest:
accumulate, reduce, norm, clip, AdamW, gather. zero-compile compiles the step.
Three commands train on four ranks:

  char_model --emit-step --mesh pp=2,dp=2 > step.mlir
  zero-compile step.mlir -o out --stage=2
  char_model --library out/libtrain.so --mesh pp=2,dp=2

The mesh, the precision, the text and the model's shape belong to the step: give
both char_model commands the same values. --accumulation and --steps may change at
any time. Each pipeline stage has a part of the layers, and sends activations by 1F1B.
With --gpus the step is one that zero-compile --target=cuda made. The model stays on the
processor, and the program copies what model and step exchange.
The program also runs a hand-written AdamW in f64 on the same gradients. It fails if
the results differ by more than rounding explains.

  --emit-step        print the logical step of the model and stop
  --list-parameters  print the parameters as JSON, for an import, and stop
  --units            with both: each layer is a unit, for --stage=3
  --library FILE     the compiled step to train with
  --imported         the step is that of a configuration: it divides by the number of
                     backward passes, and has the learning rate
  --save FOLDER      write checkpoints to this folder
  --resume           go on from the checkpoint in the folder of --save
  --text FILE        training text (default: /usr/share/common-licenses/*)
  --losses FILE      file for the loss of every step, one per line
  --mesh AXES        pipeline stages and data-parallel copies of them (dp=4)
  --precision P      type of gradients: bf16, f32, or fp16 with a loss scale (bf16)
  --rate X           peak learning rate (0.004); warm-up, then half a cosine
  --tcp              ranks exchange data as processes do: in shared memory, over TCP
                     with ZERO_RT_SHARED_MEMORY=0, over NCCL with --gpus
  --launched         this process is one rank; torchrun, srun or mpiexec has started a
                     process for each. --losses FILE is FILE.R on each rank R of the last
                     stage, with its own losses. The AdamW in f64 and the sample are left
                     out: they need all ranks. Rank, number of ranks and the address of rank 0
                     are RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (zero_rt/tcp.h has the
                     others); ZERO_RT_SECRET_FILE keeps other processes out
  --quick            same as --steps 300
  --check-preconditions   the runtime checks the preconditions of the step's proof
  --help             this text
)";
  Options defaults;
  for (const Number &number : numbers(defaults)) {
    std::string line = "  " + std::string(number.name) + " N";
    line.resize(21, ' ');
    text += line + number.help + " (" + std::to_string(*number.value) + ")\n";
  }
  return text;
}

} // namespace transformer
