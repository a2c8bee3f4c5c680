//===- Lint.h - What a configuration of DeepSpeed really does ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_LINT_H
#define ZERO_TOOLS_IMPORT_LINT_H

#include "tools/import/Import.h"

#include "llvm/Support/raw_ostream.h"

namespace zero {

enum class Severity { error, warning, note };

/// What a user may not know of a key.
struct Finding {
  Severity severity;
  std::string key;       // empty: of the model or the command line
  std::string what;      // what happens
  std::string remedy;    // what to do
  std::string reference; // "DeepSpeed #7981", or empty
};

/// A configuration, and the findings in it.
class LintContext {
public:
  LintContext(const ImportRequest &request, const llvm::json::Object &root,
              ImportedStep &step);

  void add(Severity severity, llvm::StringRef key, const llvm::Twine &what,
           const llvm::Twine &remedy, llvm::StringRef reference = "");
  /// Adds an error of an import: a sentence that ends with "; " and a remedy,
  /// or has none.
  void addError(const ConfigError &error);
  bool has(llvm::StringRef key) const { return reader.find(key); }
  /// The value of a switch, or DeepSpeed's default.
  bool isOn(llvm::StringRef key, bool otherwise = false) const {
    return reader.getBool(key).value_or(otherwise);
  }
  /// The optimizer in lower case; empty where the script makes it.
  std::string getOptimizer() const;

  const ImportRequest &request;
  std::vector<ConfigError> errors;
  ImportedStep &step;
  ConfigReader reader;
  std::vector<Finding> findings;
  // What rules ask for most often.
  int64_t stage = 0;
  bool isHalf = false, isBrain = false, isOffloaded = false;
};

/// Looks at |root|, the configuration of |request|. Findings are in the order
/// of severity, and have each error of an import. Where |request| has a model
/// and nothing is refused, |step| is that of both. An error that is not about
/// the input goes to |errors|.
std::vector<Finding> lintConfig(const ImportRequest &request,
                                const llvm::json::Object &root,
                                ImportedStep &step, Errors &errors);

// The parts of lintConfig.
void lintImport(LintContext &context, Errors &errors);
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
