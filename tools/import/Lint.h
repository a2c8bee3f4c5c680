//===- Lint.h - What a configuration of DeepSpeed really does ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_LINT_H
#define ZERO_TOOLS_IMPORT_LINT_H

#include "tools/import/Config.h"

#include "llvm/Support/raw_ostream.h"

namespace zero {

enum class Severity { error, warning, note };

/// What a user may not know of a key.
struct Finding {
  Severity severity;
  std::string key;
  std::string what;      // what happens
  std::string remedy;    // what to do
  std::string reference; // "DeepSpeed #7981", or empty
};

/// A configuration, and the findings in it.
class LintContext {
public:
  LintContext(const llvm::json::Object &root, std::optional<int64_t> numRanks);

  void add(Severity severity, llvm::StringRef key, const llvm::Twine &what,
           const llvm::Twine &remedy, llvm::StringRef reference = "");
  bool has(llvm::StringRef key) const { return reader.find(key); }
  /// The value of a switch, or DeepSpeed's default.
  bool isOn(llvm::StringRef key, bool otherwise = false) const {
    return reader.getBool(key).value_or(otherwise);
  }
  /// The optimizer in lower case; empty where the script makes it.
  std::string getOptimizer() const;

  std::vector<ConfigError> errors;
  ImportedConfig config;
  ConfigReader reader;
  std::vector<Finding> findings;
  // What rules ask for most often.
  std::optional<int64_t> numRanks;
  int64_t stage = 0;
  bool isHalf = false, isBrain = false, isOffloaded = false;
};

/// Looks at |root| for |numRanks| ranks, if they are known. Findings are in the
/// order of severity.
std::vector<Finding> lintConfig(const llvm::json::Object &root,
                                std::optional<int64_t> numRanks);

// The parts of lintConfig.
void lintKeys(LintContext &context);
void lintUnread(LintContext &context);
void lintContradictions(LintContext &context);
void lintDefaults(LintContext &context);
void lintBugs(LintContext &context);

/// Findings as text, and as JSON.
void printFindings(llvm::ArrayRef<Finding> findings, llvm::StringRef file,
                   llvm::raw_ostream &os);
llvm::json::Array listFindings(llvm::ArrayRef<Finding> findings);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_LINT_H
