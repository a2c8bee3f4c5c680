//===- Tool.cpp - How every tool begins and ends --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Tool.h"

#include "dialect/zero/Suggest.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/WithColor.h"

#include <csignal>
#include <unistd.h>

using namespace zero;
namespace cl = llvm::cl;

static const char *toolName;

static void printVersion(llvm::raw_ostream &os) {
  os << toolName << " " ZERO_VERSION "\n"
     << "LLVM and MLIR " LLVM_VERSION_STRING "\n";
}

/// What goes to stdout can be lost: on a full disk, or behind a limit. LLVM's
/// stream would end the process in its destructor, with no word of where.
static void checkStdout() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  llvm::outs().clear_error();
  if (error)
    llvm::WithColor::error(llvm::errs(), toolName)
        << "cannot write to stdout: " << error.message() << "\n";
  llvm::errs().clear_error();
  if (error)
    _exit(static_cast<int>(ExitCode::environment));
}

void zero::initProcess(const char *name) {
  toolName = name;
  cl::SetVersionPrinter(printVersion);
  // A child inherits blocked signals.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // Both exist before the check is registered, and so are destroyed after it.
  llvm::outs();
  llvm::errs();
  std::atexit(checkStdout);
}

Tool::Tool(const char *name, int &argc, char **&argv)
    : errors(name), argc(argc), argv(argv), init(argc, argv) {
  initProcess(name);
}

/// "; did you mean '--mesh=dp=4'?" for the unknown option |written|. LLVM
/// suggests |nearest|, an option of this tool, however different its name is.
static std::string suggestOption(llvm::StringRef written,
                                 llvm::StringRef nearest) {
  auto [name, value] = written.ltrim('-').split('=');
  if (name == "ranks") {
    // Only zero-run has --ranks. The other tools take the size of an axis.
    int64_t ranks;
    for (llvm::StringRef option : {"mesh=dp=", "zero-set-mesh=mesh=dp="})
      if (cl::getRegisteredOptions().contains(option.split('=').first))
        return ("; did you mean '--" + option +
                (value.getAsInteger(10, ranks) ? "N" : value) + "'?")
            .str();
    return "";
  }
  llvm::StringRef other = nearest.ltrim('-').split('=').first;
  unsigned most = getMaxEdits(name);
  if (name.edit_distance(other, /*AllowReplacements=*/true, most) > most)
    return "";
  return ("; did you mean '" + nearest + "'?").str();
}

/// What LLVM says of a command line, in our words. Its lines begin with the
/// name of the program.
static std::string describe(llvm::StringRef text) {
  llvm::SmallVector<std::string> messages;
  llvm::StringRef unknown;
  for (llvm::StringRef line : llvm::split(text, '\n')) {
    if (line.starts_with(toolName))
      line = line.split(": ").second;
    if (line.consume_front("Unknown command line argument '")) {
      unknown = line.split("'.  Try").first;
      messages.push_back("unknown option '" + unknown.str() + "'");
    } else if (line.consume_front("Did you mean '") && !messages.empty())
      messages.back() += suggestOption(unknown, line.split("'?").first);
    else if (line.starts_with("Too many positional arguments"))
      messages.push_back("the command line has too many files");
    else if (!line.trim().empty() &&
             !line.starts_with("Can specify at most")) // of the line before
      messages.push_back(line.trim().str());
  }
  if (messages.empty())
    return "";
  return llvm::join(messages, "; ") + "; see --help";
}

bool Tool::parse(cl::OptionCategory &category, const llvm::Twine &overview,
                 const cl::opt<bool> &json) {
  cl::HideUnrelatedOptions(category);
  std::string text;
  llvm::raw_string_ostream os(text);
  bool isParsed = cl::ParseCommandLineOptions(
      argc, argv, (overview + kExitCodes).str(), &os);
  if (json)
    errors.keepForJson();
  if (isParsed)
    return true;
  std::string message = describe(text);
  // LLVM prints some of its messages to stderr, whatever the stream is.
  if (message.empty())
    errors.addPrinted(ExitCode::usage, "an option lacks a value, or has a "
                                       "wrong one; stderr names the option");
  else
    errors.add(ExitCode::usage, message);
  return false;
}

int Tool::fail(ExitCode code, const llvm::Twine &message) {
  errors.add(code, message);
  return finish();
}

int Tool::finish(llvm::json::Object result) {
  if (errors.areForJson()) {
    result["errors"] = llvm::json::Array(errors.getList());
    llvm::outs() << llvm::json::Value(std::move(result)) << "\n";
  }
  return static_cast<int>(errors.getCode());
}

void zero::parseAllOptions(const char *name, int argc, char **argv,
                           const llvm::Twine &overview) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (cl::ParseCommandLineOptions(argc, argv, (overview + kExitCodes).str(),
                                  &os))
    return;
  if (std::string message = describe(text); !message.empty())
    llvm::WithColor::error(llvm::errs(), name) << message << "\n";
  std::exit(static_cast<int>(ExitCode::usage));
}
