//===- SealedCheckpoint.cpp - Wrong files with right checksums ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SealedCheckpoint.h"

#include "checkpoint/checksum.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace zero_rt;
using namespace zero_rt::test;

std::string zero_rt::test::replaced(std::string text, const std::string &from,
                                    const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from << " is not in " << text;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

SealedCheckpoint::SealedCheckpoint()
    : SealedCheckpoint(makeStateStep({2}), [](const zero_rt_library &step,
                                              const std::string &path) {
        saveState(step, path, 1);
      }) {}

SealedCheckpoint::SealedCheckpoint(
    LibraryBuilder saved,
    const std::function<void(const zero_rt_library &, const std::string &)>
        &save)
    : library(std::move(saved)) {
  save(library.get(), folder.at());
  index = folder.at("checkpoint.json");
  first = folder.at("save-1/rank-00000.safetensors");
  second = folder.at("save-1/rank-00001.safetensors");
}

void SealedCheckpoint::seal(std::string text) const {
  text.resize(text.rfind("  \"checksum\": \""));
  writeText(index,
            text + "  \"checksum\": \"" + Checksum::of(text) + "\"\n}\n");
}

void SealedCheckpoint::putHeader(const std::string &header,
                                 const std::string &data) const {
  std::string old = readText(first);
  std::string length(8, '\0');
  uint64_t bytes = header.size();
  std::memcpy(length.data(), &bytes, 8);
  uint64_t oldBytes = 0;
  std::memcpy(&oldBytes, old.data(), 8);
  std::string text = readText(index);
  text = replaced(text, Checksum::of(old.substr(0, 8 + oldBytes)),
                  Checksum::of(length + header));
  text =
      replaced(text, "\"bytes\": " + std::to_string(old.size()),
               "\"bytes\": " + std::to_string(8 + header.size() + data.size()));
  writeText(first, length + header + data);
  seal(text);
}

std::string SealedCheckpoint::header() const {
  std::string text = readText(first);
  uint64_t bytes = 0;
  std::memcpy(&bytes, text.data(), 8);
  return text.substr(8, bytes);
}

std::string SealedCheckpoint::data() const {
  return readText(first).substr(8 + header().size());
}
