//===- Mesh.cpp - The ranks that train together ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Mesh.h"

#include <cctype>
#include <cstdlib>

namespace transformer {

bool parseMesh(const std::string &text, Mesh &out) {
  constexpr int64_t most = 256;
  out = {1, 1};
  int64_t seen = 0;
  for (size_t at = 0;; ++at) {
    std::string axis = text.substr(at, 3);
    if (axis != "pp=" && axis != "dp=")
      return false;
    int64_t &size = axis == "pp=" ? out.stages : out.copies;
    int64_t bit = axis == "pp=" ? 1 : 2;
    const char *digits = text.c_str() + at + 3;
    char *end;
    if (seen & bit || !std::isdigit(static_cast<unsigned char>(*digits)))
      return false;
    seen |= bit;
    size = std::strtoll(digits, &end, 10);
    if (size < 1 || size > most || out.ranks() > most)
      return false;
    if (!*end)
      return true;
    if (*end != ',')
      return false;
    at = size_t(end - text.c_str());
  }
}

} // namespace transformer
