//===- Text.h - Text as tokens, and batches of it ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_TEXT_H
#define ZERO_EXAMPLES_TRANSFORMER_TEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace transformer {

/// A text over the characters that occur in it.
class Text {
public:
  /// Reads |path|, or with an empty path the licences that every Debian has, in
  /// the order of their names. On failure returns false and explains.
  static bool read(const std::string &path, Text &out, std::string &error);

  explicit Text(const std::string &characters = "");

  int64_t vocabulary() const { return int64_t(characters.size()); }
  int64_t size() const { return int64_t(tokens.size()); }
  char character(int32_t token) const { return characters[token]; }

  /// Pieces |first| to |first| + |count| of |context| tokens, and the tokens
  /// that follow each. A piece depends on |seed| and its number only, so that
  /// it does not matter how ranks and backward passes share out the pieces of a
  /// step.
  void sample(uint64_t seed, uint64_t first, int64_t count, int64_t context,
              std::vector<int32_t> &inputs,
              std::vector<int32_t> &targets) const;

private:
  std::string characters; // sorted
  std::vector<int32_t> tokens;
};

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_TEXT_H
