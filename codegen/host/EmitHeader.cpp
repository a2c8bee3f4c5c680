//===- EmitHeader.cpp - The C header of a compiled step -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Calls.h"
#include "codegen/host/EmitLibrary.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero;

/// The comment of a call in the header; empty if the call needs none.
static StringRef getComment(Call call) {
  switch (call) {
  case Call::step_create:
    return "Creates the step on this rank. Collective: every rank of the "
           "runtime's process group makes this call, and all ranks must "
           "have loaded the same plan. Waits for the other ranks, at most "
           "for the timeout of the runtime. |options| is reserved: pass "
           "null. Ownership: the caller destroys the step before its "
           "runtime.";
  case Call::step_destroy:
    return "Frees the step. A null step is an error.";
  case Call::find_parameter:
    return "The number of the parameter called |name|.";
  case Call::bind_parameter:
    return "Sets the initial value of this rank's part of a parameter: the "
           "whole parameter, or a slice if it is sharded (in the "
           "parameter's dtype, row-major). Ranks that hold the same part "
           "pass the same values. Only between steps.";
  case Call::parameter:
    return "A read-only view of this rank's part of a parameter, valid "
           "until destroy. The view is current after apply; on a GPU, for "
           "work on a stream after parameter_wait, and for zero_rt_copy.";
  case Call::begin_backward:
    return "Begins a backward pass. |hint| is a zero_rt_hint: in a "
           "backward pass with hint LAST, buckets are reduced as soon as "
           "they are complete. A LAST hint that is wrong on all ranks "
           "costs a second reduction, and sums are rounded differently.";
  case Call::gradient:
    return "Takes the gradient of this rank's part of one parameter in the "
           "open backward pass, after the work on |stream|. The caller may "
           "reuse the tensor from the timepoint |out_release| on. If "
           "|out_release| is null, the caller may reuse it at once; on a "
           "GPU, later work on |stream| may.";
  case Call::gradients:
    return "As gradient for |count| parameters, in order. All arguments are "
           "checked first: if one is wrong, no gradient is taken. "
           "|out_releases| is null, or has |count| timepoints.";
  case Call::gradient_slot:
    return "For producers that write gradients in place, in later work on "
           "|stream|. Returns a gradient view. Overwrite the view if "
           "|out_beta| is 0, add to it if |out_beta| is 1, and then call "
           "gradient_ready. A gradient view has the dtype in which the "
           "gradient arrives. If the gradient is kept in another dtype "
           "there is no view (unsupported).";
  case Call::gradient_ready:
    return "The gradient view of a parameter has been written, or is "
           "written by the work on |stream|.";
  case Call::accumulate:
    return "Closes the open backward pass. Another backward pass follows "
           "before apply.";
  case Call::discard:
    return "Drops everything since the last apply, on every rank.";
  case Call::apply:
    return "Closes the open backward pass, if there is one, reduces over "
           "the ranks and updates, after the work on |stream|. Collective. "
           "|inputs| are the scalar arguments of the step, in order: the "
           "same on every rank, or an addend of each rank if the step says "
           "so. Inputs that updates depend on, such as a learning rate, "
           "must be finite: if one is nan or infinite on any rank, all "
           "ranks refuse the step and change nothing. An input that is "
           "only reported may be nan or infinite.";
  case Call::results:
    return "Waits for the last apply. Set out_results->struct_size first. "
           "A skipped step is an outcome and returns ok. A refused step "
           "returns an error, and the message names the cause, such as a "
           "missing gradient or an input of apply that is not finite, and "
           "its rank.";
  case Call::loss_scale:
    return "The factor by which the caller multiplies the loss of the next "
           "backward pass. It is 1 if the step has no loss scale. "
           "Otherwise the call waits for the last apply, and the factor is "
           "the same until the next apply.";
  case Call::parameter_wait:
    return "Makes |stream| wait until a parameter (-1: every parameter) "
           "may be read.";
  case Call::state_count:
    return "The number of state entries on this rank, for checkpoints. An "
           "entry is (parameter, role, interval of the elements of the "
           "parameter that this rank holds), and does not depend on "
           "buckets.";
  case Call::state_describe:
    return "Describes entry |entry|. Set out_entry->struct_size first.";
  case Call::state_read:
    return "Copies an entry to |out_data|. |bytes| is exactly the size of "
           "the entry.";
  case Call::state_write:
    return "Copies |data| to an entry. Only between steps. A checkpoint "
           "may be written in any order: each entry keeps the values that "
           "were written. Writing 'master' alone also sets 'parameter', "
           "rounded, and writing 'parameter' alone also sets 'master'. If "
           "'master' is divided over ranks, a rank lacks the other slices, "
           "and a write of 'master' alone makes the next backward pass an "
           "error (protocol): write 'parameter', too, on every rank.";
  case Call::gradient_of:
    return "As gradient, for concurrent backward passes: for the backward "
           "pass with number |backward|, counted from 0 since the last "
           "apply or discard. The first gradient of a backward pass begins "
           "it. The gradient waits while an earlier backward pass has not "
           "ended.";
  case Call::end_backward:
    return "All gradients of the backward pass with number |backward| have "
           "arrived. apply ends the last backward pass itself.";
  case Call::find_activation:
    return "The number of the activation called |name|.";
  case Call::send:
    return "Sends to the peer of an activation. The source stage sends the "
           "activation, and the destination stage sends its gradient. "
           "|micro_batch| is a number that the caller chooses; each "
           "micro-batch is sent once between two calls of apply or "
           "discard. |shape| holds the extents; it may be null for a "
           "gradient, and if all extents are declared. The call copies the "
           "tensor and never waits.";
  case Call::receive_shape:
    return "The extents of the tensor that receive with the same arguments "
           "fills. Waits for the extents that are not declared.";
  case Call::receive:
    return "Waits for the tensor that the peer of an activation sends, and "
           "writes it to |tensor|. After a timeout the call may be "
           "repeated.";
  default:
    return "";
  }
}

static constexpr size_t kColumns = 80;

/// Prints |words|, split at |separator|, in lines that begin with |indent|. The
/// first line already has text up to |column|.
static void printFilled(raw_ostream &os, StringRef words, StringRef separator,
                        StringRef indent, size_t column) {
  bool isFirst = true;
  while (!words.empty()) {
    auto [word, rest] = words.split(separator);
    words = rest;
    StringRef mark = rest.empty() ? "" : separator.rtrim();
    size_t length = word.size() + mark.size();
    if (!isFirst && column + 1 + length > kColumns) {
      os << "\n" << indent;
      column = indent.size();
    } else if (!isFirst) {
      os << " ";
      ++column;
    }
    os << word << mark;
    column += length;
    isFirst = false;
  }
}

static void printComment(raw_ostream &os, StringRef text) {
  os << "/// ";
  printFilled(os, text, " ", "/// ", 4);
  os << "\n";
}

static void printPrototype(raw_ostream &os, const Twine &name,
                           StringRef arguments) {
  std::string head = ("zero_rt_status " + name + "(").str();
  os << head;
  printFilled(os, arguments, ", ", std::string(head.size(), ' '), head.size());
  os << ");\n";
}

/// `fc1.weight` as `FC1_WEIGHT`.
static std::string toMacro(StringRef name) {
  std::string text = name.upper();
  for (char &c : text)
    if (!llvm::isAlnum(c))
      c = '_';
  return text;
}

/// Defines a macro for each of |names|. Names that differ only in punctuation
/// get no macro; callers look them up by name.
static void printNumbers(raw_ostream &os, const Twine &prefix,
                         ArrayRef<std::string> names) {
  llvm::StringMap<int> count;
  for (const std::string &name : names)
    ++count[toMacro(name)];
  for (auto [i, name] : llvm::enumerate(names))
    if (i < 1000 && count[toMacro(name)] == 1)
      os << "#define " << prefix << toMacro(name) << " " << i << "\n";
}

/// The numbering of ranks; empty if there are fewer than two axes.
static std::string describeMesh(const Tables &tables) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (tables.axes.size() < 2)
    return text;
  os << ", numbered over";
  for (const zero_rt_axis_row &axis : tables.axes)
    os << " " << tables.strings.getBytes().data() + axis.name << "="
       << axis.size;
  os << ",\n// the last one fastest";
  return text;
}

std::string zero::emitHeader(const Tables &tables, StringRef prefix) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string macro = toMacro(prefix);
  os << "// " << prefix << ".h: the C interface of step '" << tables.name
     << "', generated by\n// zero-compile for " << tables.ranks << " rank"
     << (tables.ranks == 1 ? "" : "s") << describeMesh(tables) << ".\n"
     << "//\n"
        "// Every call returns a zero_rt_status. zero_rt_message() describes "
        "the error.\n"
        "// Exception: a call with a null step or runtime keeps the message of "
        "the call\n"
        "// before. One thread at a time uses a runtime and its steps.\n\n";
  os << "#ifndef " << macro << "_H\n#define " << macro << "_H\n\n"
     << "#include \"zero_rt/abi.h\"\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  os << "/// The plan of this header.\n"
     << "#define " << macro << "_PLAN_HASH UINT64_C(0x"
     << llvm::utohexstr(tables.planHash, /*LowerCase=*/true) << ")\n#define "
     << macro << "_RANKS " << tables.ranks << "\n#define " << macro
     << "_NUM_PARAMETERS " << tables.parameters.size() << "\n#define " << macro
     << "_NUM_INPUTS " << tables.inputs.size() << "\n";
  for (auto [i, input] : llvm::enumerate(tables.inputs))
    if (input.tokens)
      os << "/// The number of tokens of this rank; gradients are divided by "
            "the sum.\n"
         << "#define " << macro << "_INPUT_TOKENS " << i << "\n";
  os << "\n";
  os << "/// Numbers of the parameters. find_parameter finds every parameter "
        "by name.\n";
  printNumbers(os, macro + "_PARAMETER_", tables.parameterNames);
  if (!tables.activationNames.empty())
    os << "\n/// Numbers of the activations.\n";
  printNumbers(os, macro + "_ACTIVATION_", tables.activationNames);
  os << "\n/// Indices into zero_rt_results::values.\n";
  for (auto [i, name] : llvm::enumerate(tables.resultNames))
    os << "#define " << macro << "_RESULT_" << toMacro(name) << " " << i
       << "\n";
  os << "\n";
  for (const CallInfo &info : getCalls()) {
    if (!info.isStepCall)
      continue;
    if (StringRef comment = getComment(info.call); !comment.empty())
      printComment(os, comment);
    StringRef name = info.name;
    name.consume_front("step_");
    std::string arguments = info.arguments.str();
    // clang-format writes "type * name" in the arguments of a macro.
    for (size_t at; (at = arguments.find("* ")) != std::string::npos;)
      arguments.erase(at + 1, 1);
    if (info.call == Call::step_create)
      arguments = "(zero_rt_runtime *runtime, const void *options, "
                  "zero_rt_step **out_step)";
    printPrototype(os, prefix + "_" + name,
                   StringRef(arguments).drop_front().drop_back());
  }
  os << "\n#ifdef __cplusplus\n} // extern \"C\"\n#endif\n\n#endif // " << macro
     << "_H\n";
  return text;
}
