//===- Text.cpp - Text as tokens, and batches of it -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

namespace transformer {

Text::Text(const std::string &text) {
  std::set<char> seen(text.begin(), text.end());
  characters.assign(seen.begin(), seen.end());
  int32_t token[256] = {};
  for (size_t i = 0; i < characters.size(); ++i)
    token[uint8_t(characters[i])] = int32_t(i);
  tokens.reserve(text.size());
  for (char c : text)
    tokens.push_back(token[uint8_t(c)]);
}

static bool append(const std::string &path, std::string &text,
                   std::string &error) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf())) {
    // Inserting no characters fails as well, and then no call has.
    error = "cannot read '" + path +
            "': " + (errno ? std::strerror(errno) : "it is empty");
    return false;
  }
  text += content.str();
  return true;
}

bool Text::read(const std::string &path, Text &out, std::string &error) {
  std::string text;
  if (!path.empty()) {
    if (!append(path, text, error))
      return false;
  } else {
    const char *const folder = "/usr/share/common-licenses";
    std::vector<std::string> files;
    std::error_code code;
    // GPL is a link to GPL-3 and so on; a text counts once.
    for (const auto &entry : std::filesystem::directory_iterator(folder, code))
      if (!entry.is_symlink(code) && entry.is_regular_file(code))
        files.push_back(entry.path().string());
    if (files.empty()) {
      error = "there is no text in '" + std::string(folder) +
              "'; name a file with --text";
      return false;
    }
    std::sort(files.begin(), files.end());
    for (const std::string &file : files)
      if (!append(file, text, error))
        return false;
  }
  out = Text(text);
  return true;
}

void Text::sample(uint64_t seed, uint64_t first, int64_t count, int64_t context,
                  std::vector<int32_t> &inputs,
                  std::vector<int32_t> &targets) const {
  uint64_t places = uint64_t(size() - context);
  inputs.clear();
  targets.clear();
  for (uint64_t piece = first; piece < first + uint64_t(count); ++piece) {
    std::seed_seq keys{uint32_t(seed), uint32_t(seed >> 32), uint32_t(piece),
                       uint32_t(piece >> 32)};
    std::mt19937_64 generator(keys);
    // Not std::uniform_int_distribution, which differs between libraries.
    auto begin = tokens.begin() + int64_t(generator() % places);
    inputs.insert(inputs.end(), begin, begin + context);
    targets.insert(targets.end(), begin + 1, begin + context + 1);
  }
}

} // namespace transformer
