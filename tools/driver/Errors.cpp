//===- Errors.cpp - What a tool reports as an error -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Errors.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

const char *const zero::kExitCodes =
    "\nExit codes: 0 done; 1 the input is wrong, or a check failed; 2 the "
    "command line is\nwrong; 3 the environment failed: a file cannot be read "
    "or written, or there\nis no memory; 4 a lowered step is consistent by "
    "itself, and was not compared with a\nstep (zero-prove); 130 ended by "
    "Ctrl-C.\n";

/// Where a diagnostic is about, or null: MLIR's parser puts a module, and with
/// it what passes say of options, at line 0 of its file.
static FileLineColLoc findPlace(Location location) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  return place && place.getLine() > 0 ? place : FileLineColLoc();
}

Place::Place(Location location) {
  if (auto place = location->findInstanceOf<FileLineColLoc>())
    file = place.getFilename().str();
  if (auto place = findPlace(location)) {
    line = place.getLine();
    column = place.getColumn();
  }
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// A line that is quoted has no more columns.
static constexpr size_t kMaxQuoted = 160;

namespace {
/// What is quoted of a line, and where the caret is in it.
struct Quote {
  std::string text;
  size_t caret = 0;
};
} // namespace

static bool isLineEnd(char c) { return c == '\n' || c == '\r'; }

/// Whether |c| continues a character of UTF-8.
static bool isContinuation(char c) { return (c & 0xC0) == 0x80; }

/// Quotes the line of |buffer| that |at| is in. Looks at no more of the line
/// than it quotes: a line can have 100 MB.
static Quote quote(StringRef buffer, const char *at) {
  const char *begin = at, *end = at;
  while (begin != buffer.begin() && !isLineEnd(begin[-1]) &&
         size_t(at - begin) <= kMaxQuoted)
    --begin;
  while (end != buffer.end() && !isLineEnd(*end) &&
         size_t(end - at) <= kMaxQuoted)
    ++end;
  if (size_t(end - begin) <= kMaxQuoted)
    return {std::string(begin, end), size_t(at - begin)};
  static constexpr StringRef dots = "...";
  StringRef before, after;
  // The caret is in the middle unless an end of the line is nearer.
  const size_t half = kMaxQuoted / 2;
  if (size_t(at - begin) > half &&
      size_t(end - at) < kMaxQuoted - half) // the line's end is near
    begin = end - (kMaxQuoted - dots.size());
  else if (size_t(at - begin) > half)
    begin = at - (half - dots.size());
  if (begin != buffer.begin() && !isLineEnd(begin[-1]))
    before = dots;
  size_t room = kMaxQuoted - before.size();
  if (size_t(end - begin) > room) {
    end = begin + (room - dots.size());
    after = dots;
  }
  while (begin < at && isContinuation(*begin))
    ++begin;
  while (end > at && end != buffer.end() && isContinuation(*end))
    --end;
  return {(before + StringRef(begin, end - begin) + after).str(),
          before.size() + size_t(at - begin)};
}

static llvm::SourceMgr::DiagKind getKind(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return llvm::SourceMgr::DK_Note;
  case DiagnosticSeverity::Warning:
    return llvm::SourceMgr::DK_Warning;
  case DiagnosticSeverity::Error:
    return llvm::SourceMgr::DK_Error;
  case DiagnosticSeverity::Remark:
    return llvm::SourceMgr::DK_Remark;
  }
  llvm_unreachable("unknown severity");
}

unsigned zero::findBuffer(llvm::SourceMgr &sources, const std::string &file) {
  for (unsigned id = 1; id <= sources.getNumBuffers(); ++id)
    if (sources.getMemoryBuffer(id)->getBufferIdentifier() == file)
      return id;
  std::string opened;
  return sources.AddIncludeFile(file, llvm::SMLoc(), opened);
}

/// |text| without bytes that a terminal would take as orders.
static std::string makePrintable(std::string text) {
  for (char &c : text)
    if (c != '\t' && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f))
      c = '?';
  return json::fixUTF8(text);
}

static void print(Diagnostic &diagnostic, llvm::SourceMgr &sources,
                  bool isQuoted) {
  auto &os = llvm::errs();
  Place place(diagnostic.getLocation());
  std::string where = place.file;
  if (place.line > 0)
    where +=
        ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  if (!where.empty())
    llvm::WithColor(os, llvm::raw_ostream::SAVEDCOLOR, /*Bold=*/true)
        << where << ": ";
  Quote quoted;
  llvm::SMLoc at;
  if (isQuoted && place.line > 0)
    if (unsigned id = findBuffer(sources, place.file)) {
      at = sources.FindLocForLineAndColumn(id, place.line, place.column);
      if (at.isValid())
        quoted =
            quote(sources.getMemoryBuffer(id)->getBuffer(), at.getPointer());
    }
  llvm::SMDiagnostic(sources, at, place.file, at.isValid() ? place.line : -1,
                     at.isValid() ? quoted.caret : -1,
                     getKind(diagnostic.getSeverity()), diagnostic.str(),
                     makePrintable(quoted.text), /*Ranges=*/{})
      .print(/*ProgName=*/nullptr, os, /*ShowColors=*/true,
             /*ShowKindLabel=*/true, /*ShowLocation=*/false);
}

void zero::printDiagnostic(Diagnostic &diagnostic, llvm::SourceMgr &sources) {
  print(diagnostic, sources, /*isQuoted=*/true);
  for (Diagnostic &note : diagnostic.getNotes())
    print(note, sources, note.getLocation() != diagnostic.getLocation());
}

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

static json::Object toJson(Diagnostic &diagnostic) {
  Place place(diagnostic.getLocation());
  json::Object object{{"message", json::fixUTF8(diagnostic.str())}};
  if (!place.file.empty())
    object["file"] = json::fixUTF8(place.file);
  if (place.line > 0) {
    object["line"] = place.line;
    object["column"] = place.column;
  }
  return object;
}

bool Errors::keep(ExitCode kind, json::Object error) {
  json::Value value(std::move(error));
  std::string text;
  llvm::raw_string_ostream(text) << value;
  if (!seen.insert(text).second)
    return false;
  if (code == ExitCode::done)
    code = kind;
  list.push_back(std::move(value));
  return true;
}

static json::Object toJson(StringRef message) {
  return json::Object{{"message", json::fixUTF8(message)},
                      {"notes", json::Array()}};
}

void Errors::addPrinted(ExitCode kind, const llvm::Twine &message) {
  keep(kind, toJson(message.str()));
}

void Errors::add(ExitCode kind, const llvm::Twine &message) {
  std::string text = message.str();
  if (keep(kind, toJson(text)) && !isJson)
    llvm::WithColor::error(llvm::errs(), tool) << text << "\n";
}

void Errors::add(Diagnostic &diagnostic, llvm::SourceMgr &sources) {
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error) {
    if (!isSilent)
      printDiagnostic(diagnostic, sources);
    return;
  }
  json::Object error = toJson(diagnostic);
  json::Array notes;
  for (Diagnostic &note : diagnostic.getNotes())
    notes.push_back(toJson(note));
  error["notes"] = std::move(notes);
  if (keep(ExitCode::failed, std::move(error)) && !isJson)
    printDiagnostic(diagnostic, sources);
}

StringRef Errors::getFirstMessage() const {
  if (list.empty())
    return "";
  return *list.front().getAsObject()->getString("message");
}
