//===- rank_file.h - The file of one rank of a checkpoint -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of the format safetensors: eight bytes with the length of the header,
// the header as JSON, and the data. Each tensor is a piece. The metadata of the
// header says for each tensor which interval of which part it is, and has the
// checksum of its data. So the checksum of the header stands for the file, and
// a rank that reads one piece need not read the others to find damage.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_RANK_FILE_H
#define ZERO_RT_CHECKPOINT_RANK_FILE_H

#include "checkpoint/files.h"
#include "checkpoint/layout.h"

#include <functional>

namespace zero_rt {

/// What the index says about a file.
struct FileDigest {
  int64_t bytes = 0;
  std::string checksum; // of the eight bytes and the header
};

/// A piece in a file.
struct StoredPiece : Piece {
  int64_t offset = 0; // of its data in the file
  std::string checksum;
};

/// Copies |bytes| bytes of a piece, from byte |offset| on, to |out|.
using PieceReader = std::function<zero_rt_status(
    const OwnPiece &piece, int64_t offset, int64_t bytes, void *out)>;

/// Creates the file, and waits until the file is on the disk.
zero_rt_status writeRankFile(const std::string &path,
                             std::vector<OwnPiece> pieces,
                             const PieceReader &read, FileDigest &out);

/// Reads the header of |path|, of which the index says |digest|. Checks all of
/// it, also against the size of the file.
zero_rt_status readRankFile(const std::string &path, const FileDigest &digest,
                            std::vector<StoredPiece> &out);

/// Compares the checksum of |piece|, with little memory.
zero_rt_status checkPiece(const std::string &path, const OpenFile &file,
                          const StoredPiece &piece);

/// Reads the data of |piece|, and compares the checksum.
zero_rt_status readPiece(const std::string &path, const OpenFile &file,
                         const StoredPiece &piece, std::vector<char> &out);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_RANK_FILE_H
