//===- Safetensors.cpp - Reads a safetensors file -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Eight bytes that say how long the header is, the header as JSON, then the
// data, which the header's offsets count from its begin.
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Safetensors.h"

#include "tools/driver/Nesting.h"

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <map>

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

static constexpr uint64_t kLengthBytes = 8;

LogicalResult zero::fail(std::string &message, const llvm::Twine &text) {
  message = text.str();
  return failure();
}

/// Numbers from 0 on, or nothing.
static std::optional<std::vector<int64_t>>
readNumbers(const json::Array *list) {
  if (!list)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json::Value &value : *list) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || *number < 0)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

static LogicalResult readTensor(StringRef name, const json::Value &value,
                                StringRef data, StoredTensor &tensor,
                                std::string &message) {
  const json::Object *object = value.getAsObject();
  auto dtype = object ? object->getString("dtype") : std::nullopt;
  auto shape = readNumbers(object ? object->getArray("shape") : nullptr);
  auto offsets =
      readNumbers(object ? object->getArray("data_offsets") : nullptr);
  if (!dtype || !shape || !offsets || offsets->size() != 2)
    return fail(message,
                "'" + name +
                    "' must have a dtype such as \"F32\", a shape and two "
                    "data_offsets, which are numbers of at least 0");
  uint64_t begin = offsets->front();
  uint64_t end = offsets->back();
  if (begin > end || end > data.size())
    return fail(message, llvm::formatv("'{0}' has data_offsets [{1}, {2}], "
                                       "and the data has {3} bytes: the file "
                                       "is truncated, or the offsets are "
                                       "wrong",
                                       name, begin, end, data.size())
                             .str());
  tensor = {name.str(), dtype->str(), std::move(*shape),
            data.slice(begin, end)};
  return success();
}

/// Whether |tensors|, ordered by their data, cover all of |data| once.
static LogicalResult checkCover(ArrayRef<StoredTensor> tensors, StringRef data,
                                std::string &message) {
  int64_t covered = 0;
  const StoredTensor *last = nullptr;
  for (const StoredTensor &tensor : tensors) {
    int64_t begin = tensor.bytes.begin() - data.begin();
    if (begin < covered)
      return fail(message, llvm::formatv(
                               "the data of '{0}' and '{1}' overlap: the first "
                               "ends at byte {2}, the second begins at {3}",
                               last->name, tensor.name, covered, begin)
                               .str());
    if (begin > covered)
      return fail(message,
                  llvm::formatv("bytes {0} to {1} of the data belong to no "
                                "tensor: '{2}' must begin at {0}, or the "
                                "header has a name twice",
                                covered, begin, tensor.name)
                      .str());
    covered = tensor.bytes.end() - data.begin();
    last = &tensor;
  }
  if (covered != static_cast<int64_t>(data.size()))
    return fail(message,
                llvm::formatv("the data has {0} bytes, expected {1} as "
                              "the tensors of the header",
                              data.size(), covered)
                    .str());
  return success();
}

/// Reads |text|, the whole file, into |tensors|.
static LogicalResult readTensors(StringRef text,
                                 std::vector<StoredTensor> &tensors,
                                 std::string &message) {
  if (text.size() < kLengthBytes)
    return fail(message,
                "the file has " + llvm::Twine(text.size()) +
                    " bytes, expected at least 8 for the header's length: "
                    "the file is truncated, or is not safetensors");
  uint64_t length = llvm::support::endian::read64le(text.data());
  StringRef rest = text.drop_front(kLengthBytes);
  if (length > rest.size())
    return fail(message,
                llvm::formatv("the header has {0} bytes, and the file has "
                              "{1} after the header's length: the file "
                              "is truncated, or is not safetensors",
                              length, rest.size())
                    .str());
  StringRef header = rest.take_front(length);
  StringRef data = rest.drop_front(length);
  if (isNestedDeeply(header))
    return fail(message, "the header is nested more than " +
                             llvm::Twine(kDeepestText) + " levels deep");
  llvm::Expected<json::Value> root = json::parse(header);
  if (!root)
    return fail(message,
                "the header is not JSON: " + llvm::toString(root.takeError()));
  const json::Object *object = root->getAsObject();
  if (!object)
    return fail(message, "the header must be a JSON object of tensors by name");
  // An object has no order, and messages must have one.
  std::map<StringRef, const json::Value *> byName;
  for (const auto &[key, value] : *object)
    if (StringRef(key) != "__metadata__")
      byName.emplace(key, &value);
  for (auto [name, value] : byName)
    if (failed(readTensor(name, *value, data, tensors.emplace_back(), message)))
      return failure();
  llvm::sort(tensors, [](const StoredTensor &a, const StoredTensor &b) {
    return std::make_tuple(a.bytes.begin(), a.bytes.end(), StringRef(a.name)) <
           std::make_tuple(b.bytes.begin(), b.bytes.end(), StringRef(b.name));
  });
  return checkCover(tensors, data, message);
}

FailureOr<SafetensorsFile> SafetensorsFile::open(StringRef path,
                                                 std::string &message) {
  SafetensorsFile file;
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return fail(message,
                "cannot open '" + path + "': " + buffer.getError().message());
  file.buffer = std::move(*buffer);
  if (succeeded(readTensors(file.buffer->getBuffer(), file.tensors, message)))
    return file;
  return fail(message, "'" + path + "': " + message);
}
