//===- TimelineReport.h - A timeline as words, JSON and a page --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_EXPLAIN_TIMELINEREPORT_H
#define ZERO_TOOLS_ZERO_EXPLAIN_TIMELINEREPORT_H

#include "tools/zero-explain/Timeline.h"

namespace zero {

/// What a timeline with a backward pass of |backward| seconds assumes, in a
/// sentence.
std::string describeAssumptions(double backward);

/// How long streams are busy, and what is alive at most in each phase. With
/// |isWhole| also all calls and buffers. Calls that are shorter than a
/// hundred-thousandth of the step are one with their neighbours.
llvm::json::Object describeTimeline(const Timeline &timeline, bool isWhole);

/// Prints |timeline|, as describeTimeline has it.
void printTimeline(const Timeline &timeline, double backward,
                   llvm::raw_ostream &os);

/// A page of HTML that shows |answer|, which has the choices, the plan, and all
/// of each timeline. It refers to no other file.
std::string makePage(llvm::json::Object answer);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_EXPLAIN_TIMELINEREPORT_H
