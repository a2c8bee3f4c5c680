//===- layout.h - Which rank writes which state -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint consists of pieces. A piece is an interval of the elements of
// one parameter and role, so it does not depend on buckets, on the ZeRO stage
// or on the number of ranks. Each element is in exactly one piece.
//
// If tensor or expert parallelism divides a parameter, a piece is an interval
// of a part, which is a box in the parameter (box.h). The name of a part is the
// text of the box. In checkpoints of version 1, and for steps that do not know
// the shapes of parameters, it has the coordinates of ranks over the axes, and
// their sizes, such as "ep=1/4,tp=0/2". The name of the only part of any other
// parameter is empty.
//
// Between two backward passes there are two more roles: the sum of the
// gradients of a parameter so far, and the number of backward passes in which a
// gradient arrived that may be missing. A rank may have an addend of them
// (addend.h).
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_LAYOUT_H
#define ZERO_RT_CHECKPOINT_LAYOUT_H

#include "checkpoint/addend.h"
#include "checkpoint/box.h"
#include "checkpoint/prescaled.h"
#include "core/step.h"

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace zero_rt {

/// A piece, apart from where its bytes are.
struct Piece {
  std::string name; // PARAMETER.ROLE, or the role of a scalar
  std::string part;
  Box box; // of the part
  Addend addend;
  Prescaled prescaled; // of a sum of gradients
  int32_t dtype = 0;
  int64_t begin = 0; // elements [begin, end) of |elements|
  int64_t end = 0;
  int64_t elements = 0;
};

/// A piece of which this rank has all elements.
struct OwnPiece : Piece {
  /// Where the elements are. The number of backward passes in which a gradient
  /// arrived is in no buffer: |buffer| is -1.
  StateEntry source;
  /// In the list of all pieces. Those of the state come first, in the order of
  /// its entries.
  size_t number = 0;
  std::string axesPart; // the name of the part in version 1

  bool isArrivals() const { return source.parameter >= 0 && source.buffer < 0; }
};

/// Whether |piece| is there only within a step, by its name.
bool isOfAccumulation(const Piece &piece);
/// Checks that only what is there within a step has addends, and that only sums
/// have a factor.
zero_rt_status checkMarks(const Piece &piece);

/// All elements that this rank has, one piece for each entry of its state.
/// |hasSums|: also those of the sums of gradients.
std::vector<OwnPiece> listHeldPieces(const Step &step, bool hasSums);

/// The pieces that this rank writes. Elements that several ranks have are
/// divided over these ranks. Errors: invalid_argument (two values would have
/// one name), unsupported (a name is not UTF-8).
zero_rt_status listWrittenPieces(const Step &step, bool hasSums,
                                 std::vector<OwnPiece> &out);

/// The state of all ranks by name.
class StateNames {
public:
  StateNames(const Step &step, bool hasSums);
  /// Checks that |piece| is of a value and a part that the step has. The
  /// message names |piece|.
  zero_rt_status check(const Piece &piece) const;

private:
  struct Value {
    int32_t dtype;
    int64_t elements; // of a part
    int64_t axes;     // over which it is divided into parts, as bits
    Box whole;        // not known of a scalar, and without shapes
    Prescaled prescaled;
  };
  void addSums(const zero_rt_library &library, int64_t parameter);
  static zero_rt_status checkFactor(const Piece &piece, const Value &value);
  static zero_rt_status checkBox(const Piece &piece, const Value &value);
  std::unordered_map<std::string, Value> values;
  std::map<int64_t, std::set<std::string>> parts; // by axes
};

/// "'fc1.weight.m' [0, 12)", and its part if it has one, for messages.
std::string describePiece(const Piece &piece);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_LAYOUT_H
