//===- rank_file.cpp - The file of one rank of a checkpoint ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/rank_file.h"

#include "checkpoint/checksum.h"
#include "core/json.h"
#include "core/numeric.h"
#include "core/status.h"

#include <algorithm>
#include <cctype>
#include <charconv>

using namespace zero_rt;

/// Bytes that are read, hashed and written at a time.
static constexpr int64_t pieceChunk = 8 << 20;
static constexpr int64_t lengthBytes = 8;
/// What the format allows.
static constexpr int64_t mostHeaderBytes = 100'000'000;

/// The name of a floating-point type in the format, such as "BF16".
static std::string formatDtype(int32_t dtype) {
  std::string name = dtypeName(dtype);
  for (char &c : name)
    c = char(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

/// What the name of an addend follows in the place of a piece.
static const std::string addendMark = " addend:";
/// What the factor that gradients arrive with follows.
static const std::string prescaledMark = " prescaled:";

static int64_t bytesOfPiece(const Piece &piece) {
  return (piece.end - piece.begin) * elementSize(piece.dtype);
}

/// The first bytes of a file with |pieces|, which have |checksums|.
static std::string formatHeader(const std::vector<OwnPiece> &pieces,
                                const std::vector<std::string> &checksums) {
  std::string metadata, tensors;
  int64_t offset = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const OwnPiece &piece = pieces[i];
    std::string place = std::to_string(piece.begin) + " " +
                        std::to_string(piece.end) + " " +
                        std::to_string(piece.elements) + " " + checksums[i];
    if (!piece.part.empty())
      place += " " + piece.part;
    if (!piece.addend.isWhole())
      place += addendMark + piece.addend.text();
    if (!piece.prescaled.isOne())
      place += prescaledMark + piece.prescaled.text();
    metadata += (i ? "," : "") + quote(piece.name) + ":" + quote(place);
    int64_t end = offset + bytesOfPiece(piece);
    tensors += "," + quote(piece.name) +
               ":{\"dtype\":" + quote(formatDtype(piece.dtype)) +
               ",\"shape\":[" + std::to_string(piece.end - piece.begin) +
               "],\"data_offsets\":[" + std::to_string(offset) + "," +
               std::to_string(end) + "]}";
    offset = end;
  }
  std::string header = "{\"__metadata__\":{" + metadata + "}" + tensors + "}";
  header.resize((header.size() + 7) / 8 * 8, ' '); // so that data is aligned
  std::string length(lengthBytes, '\0');
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = char(header.size() >> 8 * i & 0xFF);
  return length + header;
}

zero_rt_status zero_rt::writeRankFile(const std::string &path,
                                      std::vector<OwnPiece> pieces,
                                      const PieceReader &read,
                                      FileDigest &out) {
  // Wide elements first: then all are aligned.
  std::sort(pieces.begin(), pieces.end(),
            [](const OwnPiece &a, const OwnPiece &b) {
              int64_t wide = elementSize(a.dtype), other = elementSize(b.dtype);
              return wide != other ? wide > other : a.number < b.number;
            });
  std::vector<std::string> checksums(pieces.size(),
                                     std::string(checksumDigits, '0'));
  // All checksums have one length, and so the header has its length already.
  auto offset = int64_t(formatHeader(pieces, checksums).size());
  if (offset - lengthBytes > mostHeaderBytes)
    return fail(ZERO_RT_UNSUPPORTED,
                "the header of '%s' would have %lld bytes, and the format "
                "allows %lld; save with more ranks",
                path.c_str(), (long long)(offset - lengthBytes),
                (long long)mostHeaderBytes);
  OpenFile file;
  ZERO_RT_TRY(file.create(path));
  std::vector<char> chunk;
  for (size_t i = 0; i < pieces.size(); ++i) {
    Checksum checksum;
    int64_t bytes = bytesOfPiece(pieces[i]);
    for (int64_t begin = 0; begin < bytes; begin += pieceChunk) {
      chunk.resize(size_t(std::min(pieceChunk, bytes - begin)));
      ZERO_RT_TRY(read(pieces[i], begin, int64_t(chunk.size()), chunk.data()));
      checksum.add(chunk.data(), chunk.size());
      ZERO_RT_TRY(file.write(chunk.data(), chunk.size(), offset));
      offset += int64_t(chunk.size());
    }
    checksums[i] = checksum.text();
  }
  std::string header = formatHeader(pieces, checksums);
  ZERO_RT_TRY(file.write(header.data(), header.size(), 0));
  ZERO_RT_TRY(file.finish());
  out = {offset, Checksum::of(header)};
  return ZERO_RT_OK;
}

/// Reads the number at the begin of |text|, and the space behind it.
static bool takeCount(std::string_view &text, int64_t &out) {
  auto [last, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || last == text.data() + text.size() ||
      *last != ' ' || out < 0)
    return false;
  text.remove_prefix(size_t(last - text.data()) + 1);
  return true;
}

/// Cuts off what is behind |mark| at the end of |text|. Empty without a mark.
static std::string_view cutOff(std::string_view &text, std::string_view mark) {
  size_t begin = text.find(mark);
  if (begin == std::string_view::npos)
    return {};
  std::string_view end = text.substr(begin + mark.size());
  text = text.substr(0, begin);
  return end;
}

/// Reads the place of a piece: "BEGIN END ELEMENTS CHECKSUM[ PART][
/// addend:ADDEND][ prescaled:FACTOR]".
static bool readPlace(std::string_view text, StoredPiece &piece) {
  if (!takeCount(text, piece.begin) || !takeCount(text, piece.end) ||
      !takeCount(text, piece.elements) || text.size() < checksumDigits)
    return false;
  piece.checksum = text.substr(0, checksumDigits);
  text.remove_prefix(checksumDigits);
  if (!text.empty() && text[0] != ' ')
    return false;
  std::string_view prescaled = cutOff(text, prescaledMark);
  std::string_view addend = cutOff(text, addendMark);
  if ((!prescaled.empty() && !readPrescaled(prescaled, piece.prescaled)) ||
      (!addend.empty() && !readAddend(addend, piece.addend)))
    return false;
  piece.part = text.substr(std::min<size_t>(1, text.size()));
  // Else it has the axes of version 1.
  if (!readBox(piece.part, piece.elements, piece.box))
    piece.box = {};
  return piece.begin < piece.end && piece.end <= piece.elements;
}

/// Reads the tensor |value|, whose name and place |piece| has. |data| is the
/// offset of all data in the file, and |bytes| their number.
static bool readTensorRow(const Json &value, int64_t data, int64_t bytes,
                          StoredPiece &piece) {
  const std::string *dtype = value.findText("dtype");
  const Json *shape = value.find("shape");
  const Json *offsets = value.find("data_offsets");
  int64_t elements = 0, begin = 0, end = 0;
  if (!dtype || !shape || shape->items.size() != 1 || !offsets ||
      offsets->items.size() != 2 || !shape->items[0].isCount(elements) ||
      !offsets->items[0].isCount(begin) || !offsets->items[1].isCount(end))
    return false;
  piece.dtype = 0;
  while (isDtype(piece.dtype) && formatDtype(piece.dtype) != *dtype)
    ++piece.dtype;
  if (!isDtype(piece.dtype) || begin > end || end > bytes)
    return false;
  piece.offset = data + begin;
  return elements == piece.end - piece.begin && elements <= bytes &&
         end - begin == bytesOfPiece(piece);
}

static zero_rt_status readPieces(const Json &root, int64_t data, int64_t bytes,
                                 std::vector<StoredPiece> &out) {
  const Json *metadata = root.find("__metadata__");
  if (!metadata)
    return fail(ZERO_RT_INVALID_ARGUMENT, "its header has no '__metadata__'");
  std::unordered_map<std::string_view, const Json *> places;
  for (const auto &[name, place] : metadata->members)
    places[name] = &place;
  for (const auto &[name, value] : root.members) {
    if (&value == metadata)
      continue;
    StoredPiece piece;
    piece.name = name;
    auto place = places.find(name);
    if (place == places.end() || !readPlace(place->second->text, piece))
      return fail(
          ZERO_RT_INVALID_ARGUMENT,
          "the metadata of '%s' are not 'BEGIN END ELEMENTS CHECKSUM[ PART][ "
          "addend:ADDEND][ prescaled:FACTOR]'",
          name.c_str());
    if (!readTensorRow(value, data, bytes, piece))
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "the dtype, the shape, the data_offsets and the metadata of "
                  "'%s' do not fit each other or the %lld bytes of data",
                  name.c_str(), (long long)bytes);
    out.push_back(std::move(piece));
  }
  // The data of all tensors is the data of the file, each byte once.
  std::vector<const StoredPiece *> inOrder;
  for (const StoredPiece &piece : out)
    inOrder.push_back(&piece);
  std::sort(inOrder.begin(), inOrder.end(),
            [](const StoredPiece *a, const StoredPiece *b) {
              return a->offset < b->offset;
            });
  int64_t covered = data;
  for (const StoredPiece *piece : inOrder) {
    if (piece->offset != covered)
      return fail(
          ZERO_RT_INVALID_ARGUMENT,
          "the data of '%s' begins at byte %lld, expected %lld: tensors "
          "overlap, or there is a gap",
          piece->name.c_str(), (long long)(piece->offset - data),
          (long long)(covered - data));
    covered += bytesOfPiece(*piece);
  }
  if (covered != data + bytes)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "its data has %lld bytes, expected %lld as its tensors",
                (long long)bytes, (long long)(covered - data));
  return ZERO_RT_OK;
}

static zero_rt_status readHeader(const OpenFile &file, const FileDigest &digest,
                                 std::vector<StoredPiece> &out) {
  if (file.size() != digest.bytes)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "it has %lld bytes, expected %lld: it is truncated, or was "
                "replaced",
                (long long)file.size(), (long long)digest.bytes);
  unsigned char length[lengthBytes] = {};
  if (file.size() < lengthBytes)
    return fail(ZERO_RT_INVALID_ARGUMENT, "it has no header");
  ZERO_RT_TRY(file.read(length, sizeof(length), 0));
  uint64_t bytes = 0;
  for (int i = lengthBytes; i-- > 0;)
    bytes = bytes << 8 | length[i];
  auto most = uint64_t(std::min(file.size() - lengthBytes, mostHeaderBytes));
  if (bytes > most)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "its header has %llu bytes, expected at most %llu: it is "
                "damaged, or is not safetensors",
                (unsigned long long)bytes, (unsigned long long)most);
  std::string header(size_t(lengthBytes) + size_t(bytes), '\0');
  ZERO_RT_TRY(file.read(header.data(), header.size(), 0));
  std::string checksum = Checksum::of(header);
  if (checksum != digest.checksum)
    return fail(
        ZERO_RT_INVALID_ARGUMENT,
        "its header has checksum %s, expected %s: it is damaged, or was "
        "swapped with another file",
        checksum.c_str(), digest.checksum.c_str());
  Json root;
  ZERO_RT_TRY(
      readJson(std::string_view(header).substr(size_t(lengthBytes)), root));
  auto data = int64_t(header.size());
  return readPieces(root, data, file.size() - data, out);
}

zero_rt_status zero_rt::readRankFile(const std::string &path,
                                     const FileDigest &digest,
                                     std::vector<StoredPiece> &out) {
  OpenFile file;
  ZERO_RT_TRY(file.open(path));
  if (zero_rt_status status = readHeader(file, digest, out))
    return fail(status, "'%s': %s", path.c_str(), lastMessage());
  return ZERO_RT_OK;
}

static zero_rt_status compareChecksum(const std::string &path,
                                      const StoredPiece &piece,
                                      const std::string &checksum) {
  if (checksum == piece.checksum)
    return ZERO_RT_OK;
  return fail(
      ZERO_RT_INVALID_ARGUMENT,
      "'%s': the data of %s has checksum %s, expected %s: it is damaged",
      path.c_str(), describePiece(piece).c_str(), checksum.c_str(),
      piece.checksum.c_str());
}

zero_rt_status zero_rt::checkPiece(const std::string &path,
                                   const OpenFile &file,
                                   const StoredPiece &piece) {
  constexpr int64_t most = int64_t(1) << 23;
  int64_t bytes = bytesOfPiece(piece);
  std::vector<char> part(size_t(std::min(bytes, most)));
  Checksum checksum;
  for (int64_t done = 0; done < bytes; done += int64_t(part.size())) {
    part.resize(size_t(std::min(bytes - done, most)));
    ZERO_RT_TRY(file.read(part.data(), part.size(), piece.offset + done));
    checksum.add(part.data(), part.size());
  }
  return compareChecksum(path, piece, checksum.text());
}

zero_rt_status zero_rt::readPiece(const std::string &path, const OpenFile &file,
                                  const StoredPiece &piece,
                                  std::vector<char> &out) {
  out.resize(size_t(bytesOfPiece(piece)));
  ZERO_RT_TRY(file.read(out.data(), out.size(), piece.offset));
  return compareChecksum(path, piece, Checksum::of({out.data(), out.size()}));
}
