//===- Report.h - What zero-run prints --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_REPORT_H
#define ZERO_TOOLS_ZERO_RUN_REPORT_H

#include "tools/driver/Tool.h"
#include "tools/zero-run/Compare.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"

namespace zero {

/// A gradient that one backward pass of a step lacked.
struct MissingGradient {
  std::string parameter;
  int64_t rank = 0;
  int64_t backward = 0;
};

enum class OutcomeKind { applied, skipped, refused };

/// What happened in a step.
struct StepReport {
  int64_t index = 0;
  StepResult result;
  std::vector<MissingGradient> missing;
  double lossScale = 1; // that gradients were multiplied by

  OutcomeKind getOutcomeKind() const;
  /// "applied", "skipped: ..." or "refused: ...".
  std::string describe() const;
};

/// The outcome of a run, in words as it goes or as one JSON object at the end.
class Report {
public:
  explicit Report(Tool &tool) : tool(tool), errors(tool.errors) {}

  void addError(ExitCode code, const llvm::Twine &message) {
    errors.add(code, message);
  }
  /// Why the run stopped, unless an error or a difference says so.
  void addStop(const llvm::Twine &message) {
    if (isEqual())
      errors.add(ExitCode::failed, message);
  }

  /// Whether the report is printed as JSON.
  bool isJson() const { return errors.areForJson(); }

  /// From here on the run fails, and not what it was given.
  void start() { started = true; }
  void addStep(StepReport step);
  void addDifference(llvm::StringRef role, const Difference &difference) {
    differences[role.str()].add(difference);
  }
  void addReportedDifference(const Difference &difference) {
    reported.add(difference);
  }
  /// Says what differs, the first time.
  void setFirstOutside(const llvm::Twine &text) {
    if (firstOutside.empty())
      firstOutside = text.str();
  }

  /// "3 steps: 3 applied, 0 skipped, 0 refused; equal", and the orders of
  /// streams that gave the same bits.
  std::string getSummary() const;
  /// Prints the rest; the result is the exit code.
  int finish();

  // What main and the run know.
  std::vector<std::string> valueNames;
  std::string engine;
  std::string against; // empty: nothing is compared
  std::string referenceName;
  int64_t ranks = 0;
  int64_t orders = 0;   // of streams, besides program order
  int64_t elements = 0; // of all parameters
  int64_t comparedElements = 0;
  std::string stateHash;
  /// By rank; empty where nothing is counted.
  std::vector<zero_rt_counters> counters;

private:
  bool isEqual() const { return firstOutside.empty() && errors.empty(); }
  int64_t count(OutcomeKind outcome) const;
  void printTable();
  void printSummary();
  llvm::json::Object toJson() const;

  Tool &tool;
  Errors &errors;
  bool started = false;
  std::vector<StepReport> steps;
  /// By role; owns the names, for a report outlives its run.
  llvm::MapVector<std::string, Difference, llvm::StringMap<unsigned>>
      differences;
  Difference reported;
  std::string firstOutside;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_REPORT_H
