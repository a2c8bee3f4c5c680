//===- RankFile.cpp - Files of ranks that nobody wrote --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is the number of bytes of data, a line feed, and a header. The file
// gets the right length of the header, and the right checksum.
//
//===----------------------------------------------------------------------===//

#include "Input.h"

#include "checkpoint/checksum.h"
#include "checkpoint/rank_file.h"
#include "core/numeric.h"

#include <algorithm>
#include <charconv>
#include <cstring>

using namespace zero_rt;
using namespace zero_rt::fuzz;

/// The tensors of a file that is accepted have each byte of its data once.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const InputFile file("rank.safetensors");
  const char *begin = reinterpret_cast<const char *>(data), *end = begin + size;
  uint16_t numData = 0;
  begin = std::from_chars(begin, end, numData).ptr;
  std::string header(begin == end ? end : begin + 1, end);
  uint64_t length = header.size();
  std::string content(sizeof(length), '\0');
  std::memcpy(content.data(), &length, sizeof(length));
  content += header;
  std::string checksum = Checksum::of(content);
  size_t first = content.size();
  content.resize(first + numData);
  file.write(content);

  std::vector<StoredPiece> pieces;
  zero_rt_status status =
      readRankFile(file.path, {int64_t(content.size()), checksum}, pieces);
  requireAnswer(status);
  if (status)
    return 0;
  std::vector<int> covered(numData);
  OpenFile opened;
  require(!opened.open(file.path), "an open file");
  for (const StoredPiece &piece : pieces) {
    require(piece.begin >= 0 && piece.begin < piece.end &&
                piece.end <= piece.elements,
            "elements of the value");
    int64_t bytes = (piece.end - piece.begin) * elementSize(piece.dtype);
    require(piece.offset >= int64_t(first) &&
                piece.offset + bytes <= int64_t(content.size()),
            "data within the file");
    for (int64_t i = 0; i < bytes; ++i)
      ++covered[size_t(piece.offset) - first + size_t(i)];
    std::vector<char> read;
    requireAnswer(checkPiece(file.path, opened, piece));
    requireAnswer(readPiece(file.path, opened, piece, read));
  }
  require(std::count(covered.begin(), covered.end(), 1) == numData,
          "each byte of the data once");
  return 0;
}
