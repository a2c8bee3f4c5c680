//===- handle.h - What callers hold of an object ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A caller holds a handle, and the handle refers to the object. A handle
// is small and never freed. Therefore a call with the handle of a destroyed
// object is an error and reads no freed memory. All handles stay reachable from
// one list, so leak checkers report nothing.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_HANDLE_H
#define ZERO_RT_CORE_HANDLE_H

#include "core/floating_point.h"
#include "zero_rt/abi.h"

#include <atomic>
#include <memory>
#include <optional>

namespace zero_rt {

struct Group;
struct Runtime;
struct Step;

/// Numbers that are unlikely in other memory, so that a pointer to another
/// object is detected.
enum class HandleKind : uint32_t {
  Group = 0x7a726731,
  Runtime = 0x7a727231,
  Step = 0x7a727331
};

struct Handle {
  /// |rank| is the handle of the step's runtime; null for others.
  Handle(HandleKind kind, Handle *rank);

  const zero_rt_calls *calls; // first, see library.h
  HandleKind kind;
  int32_t process;                     // that created it
  std::atomic<void *> object{nullptr}; // null once destroyed
  /// The handle whose |thread| is used: that of the runtime, for its steps,
  /// too.
  Handle *rank;
  std::atomic<const void *> thread{nullptr}; // in a call; null: none
  Handle *next = nullptr;                    // of all handles
};

template <typename Object, HandleKind kindOfObject> struct HandleOf : Handle {
  static constexpr HandleKind theKind = kindOfObject;
  explicit HandleOf(Handle *rank = nullptr) : Handle(theKind, rank) {}
  Object *get() const { return static_cast<Object *>(object.load()); }
};

/// Makes |handle| refer to |object|, and never frees |handle|.
void giveOut(Handle *handle, void *object) noexcept;
template <typename Typed, typename Object>
Typed *giveOut(std::unique_ptr<Typed> handle, Object *object) noexcept {
  giveOut(handle.get(), static_cast<void *>(object));
  return handle.release();
}

/// Checks that |handle|, the argument of |call|, refers to an object of |kind|
/// that this process created.
zero_rt_status checkHandle(const char *call, const Handle *handle,
                           HandleKind kind);

/// A call of one thread on a rank. A rank is a runtime and all its steps. Sets
/// the floating-point mode of the thread.
class RankCall {
public:
  RankCall() = default;
  RankCall(const RankCall &) = delete;
  RankCall &operator=(const RankCall &) = delete;
  ~RankCall();

  /// Checks the handle, and that no other thread is in a call on this rank. The
  /// object lives until the RankCall is destroyed, unless the call itself
  /// destroys the object. Calls may be nested.
  zero_rt_status begin(const char *call, Handle *handle, HandleKind kind);

private:
  Handle *rank = nullptr; // null: begun by an outer call, or not at all
  std::optional<FloatingPointMode> mode;
};

} // namespace zero_rt

struct zero_rt_group
    : zero_rt::HandleOf<zero_rt::Group, zero_rt::HandleKind::Group> {
  using HandleOf::HandleOf;
};
struct zero_rt_runtime
    : zero_rt::HandleOf<zero_rt::Runtime, zero_rt::HandleKind::Runtime> {
  using HandleOf::HandleOf;
};
struct zero_rt_step
    : zero_rt::HandleOf<zero_rt::Step, zero_rt::HandleKind::Step> {
  using HandleOf::HandleOf;
};

#endif // ZERO_RT_CORE_HANDLE_H
