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

/// What a user has to know of a call; empty for one that takes no explanation.
static StringRef getComment(Call call) {
  switch (call) {
  case Call::step_create:
    return "Creates the step on this rank. Collective: every rank of the "
           "runtime's group calls it, and all must have loaded the same plan. "
           "Blocks until the others come or the runtime's timeout. |options| "
           "is "
           "reserved: pass null. Ownership: the caller destroys the step "
           "before "
           "its runtime.";
  case Call::step_destroy:
    return "Frees the step. Null is refused.";
  case Call::find_parameter:
    return "The number of the parameter called |name|.";
  case Call::bind_parameter:
    return "Sets the initial value of a parameter: what this rank holds of it, "
           "its slice where it is sharded (its own dtype, row-major). Ranks "
           "that hold the same pass the same. Only between steps.";
  case Call::parameter:
    return "A view of what this rank holds of a parameter, ours and to be "
           "read; valid until destroy. It is current after apply; on a GPU for "
           "what comes to a stream after parameter_wait, and for zero_rt_copy.";
  case Call::begin_backward:
    return "Begins a backward pass. |hint| is a zero_rt_hint: in a backward "
           "pass that is "
           "said to be the last, buckets are reduced as they are complete. One "
           "that is wrong on all ranks costs a reduction, and sums are rounded "
           "otherwise.";
  case Call::gradient:
    return "Hands over the gradient of what this rank holds of one parameter "
           "in the open backward pass, as it is after what is on |stream|. The "
           "tensor may be reused from |out_release| on; if that is null, at "
           "once, and on a GPU by what comes to |stream| then.";
  case Call::gradient_slot:
    return "For producers that write in place, by what comes to |stream| from "
           "now on: where the gradient belongs; overwrite it if |out_beta| is "
           "0, add to it if 1, then call "
           "gradient_ready. A slot has the dtype in which the gradient "
           "arrives; "
           "where it is kept in another there is none (unsupported).";
  case Call::gradient_ready:
    return "Says that the slot of a parameter has been written, or is by what "
           "is on |stream|.";
  case Call::accumulate:
    return "Closes the open backward pass; another one follows before apply.";
  case Call::discard:
    return "Drops everything since the last apply, on every rank.";
  case Call::apply:
    return "Closes the open backward pass, if there is one, reduces over the "
           "ranks "
           "and updates, after what is on |stream|. Collective. |inputs| are "
           "the step's scalar arguments, "
           "in order: the same on every rank, or an addend of each where the "
           "step says so. One that updates depend on, such as a learning rate, "
           "must be finite: where it is nan or infinite on any rank, all ranks "
           "refuse the step and change nothing. One that is only reported may "
           "be.";
  case Call::results:
    return "Waits for the last apply; set out_results->struct_size first. "
           "Skipped steps are ok with a outcome, refused ones an error that "
           "names the cause: a gradient, or an input of apply that is not "
           "finite, and its rank.";
  case Call::loss_scale:
    return "What the next backward pass multiplies its loss by: 1 unless the "
           "step "
           "has a loss scale, and then the same until apply; for it the last "
           "apply is waited for.";
  case Call::parameter_wait:
    return "Makes |stream| wait until a parameter (-1: all) may be read.";
  case Call::state_count:
    return "State on this rank, for checkpoints: entries are (parameter, role, "
           "interval of the elements that this rank holds of it), whatever the "
           "buckets are.";
  case Call::state_describe:
    return "Tells what entry |entry| is; set out_entry->struct_size first.";
  case Call::state_read:
    return "Copies an entry out; |bytes| is exactly its size.";
  case Call::state_write:
    return "Copies an entry in; only between steps. A checkpoint may be "
           "written in any order: each entry stays as written. Writing "
           "'master' alone also sets 'parameter', rounded, and writing "
           "'parameter' alone also sets 'master'. Where 'master' is divided "
           "over ranks, writing it alone makes the next backward pass an error "
           "(protocol), since a rank lacks the other slices: write "
           "'parameter', too, on every rank.";
  case Call::gradient_of:
    return "As gradient, where several backwards are under way: of backward "
           "|backward|, counted from 0 since the last apply or discard. It "
           "begins by that, and waits where one before has not ended.";
  case Call::end_backward:
    return "All gradients of |backward| have come; the last one may be left to "
           "apply.";
  case Call::find_activation:
    return "The number of the activation called |name|.";
  case Call::send:
    return "Sends to the other end of an activation: from the stage that it "
           "comes from the activation, from the one that it goes to its "
           "gradient. |micro_batch| is the caller's number for it; between two "
           "of apply or discard each goes once. |shape| has its extents, null "
           "where all are declared and for a gradient. Copies, and never "
           "waits.";
  case Call::receive_shape:
    return "The extents of what the next receive of the same fills; waits for "
           "them where they are not declared.";
  case Call::receive:
    return "Waits for what the other end of an activation sends, and writes it "
           "to |tensor|. After a timeout it may be called again.";
  default:
    return "";
  }
}

static constexpr size_t kColumns = 80;

/// Prints |words|, apart at |separator|, in lines that begin with |indent|. The
/// first line is begun, up to |column|.
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

/// A macro for each of |names|. Names that differ only in punctuation are left
/// to the calls that look them up.
static void printNumbers(raw_ostream &os, const Twine &prefix,
                         ArrayRef<std::string> names) {
  llvm::StringMap<int> count;
  for (const std::string &name : names)
    ++count[toMacro(name)];
  for (auto [i, name] : llvm::enumerate(names))
    if (i < 1000 && count[toMacro(name)] == 1)
      os << "#define " << prefix << toMacro(name) << " " << i << "\n";
}

/// How ranks are numbered, where there are several axes to number them over.
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
     << "//\n// Every call returns a zero_rt_status; zero_rt_message() says "
        "what went wrong,\n// except that a null step or runtime leaves the "
        "message of the call before.\n// One thread at a time uses a "
        "runtime and its steps.\n\n";
  os << "#ifndef " << macro << "_H\n#define " << macro << "_H\n\n"
     << "#include \"zero_rt/abi.h\"\n\n"
     << "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  os << "/// The plan this header belongs to.\n"
     << "#define " << macro << "_PLAN_HASH UINT64_C(0x"
     << llvm::utohexstr(tables.planHash, /*LowerCase=*/true) << ")\n#define "
     << macro << "_RANKS " << tables.ranks << "\n#define " << macro
     << "_NUM_PARAMETERS " << tables.parameters.size() << "\n#define " << macro
     << "_NUM_INPUTS " << tables.inputs.size() << "\n";
  for (auto [i, input] : llvm::enumerate(tables.inputs))
    if (input.tokens)
      os << "/// What gradients are divided by: a rank passes its own count.\n"
         << "#define " << macro << "_INPUT_TOKENS " << i << "\n";
  os << "\n";
  os << "/// Numbers of the parameters; find_parameter knows all of them by "
        "name.\n";
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
    // As a person would write it, not as a macro is formatted.
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
