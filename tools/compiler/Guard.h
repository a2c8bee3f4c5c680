//===- Guard.h - Work that must not end the process -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_COMPILER_GUARD_H
#define ZERO_TOOLS_COMPILER_GUARD_H

#include <functional>
#include <string>

namespace zero {

/// How guarded work ended.
enum class GuardedEnd {
  done,
  noMemory, // or no thread
  fatal,    // an error of LLVM, now or before; the process stays as it is
};

/// Runs |work| in a thread of its own, one after the other, and waits. The
/// thread takes no signal that a client handles, and has the locale "C". If
/// LLVM wants to end the process, the thread stops instead, for ever: nothing
/// that |work| refers to may be freed. |message| describes an end other than
/// done.
GuardedEnd runGuarded(std::function<void()> work, std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_COMPILER_GUARD_H
