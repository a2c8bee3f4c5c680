//===- ParserErrors.cpp - MLIR's errors of a text, with a remedy ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/ParserErrors.h"

#include "tools/driver/Errors.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace zero;

/// The exponent at the begin of |text|, such as "e-3". "" if there is none.
static StringRef findExponent(StringRef text) {
  StringRef rest = text;
  if (!rest.consume_front("e") && !rest.consume_front("E"))
    return "";
  if (!rest.consume_front("-"))
    rest.consume_front("+");
  StringRef digits = rest.take_while(llvm::isDigit);
  if (digits.empty())
    return "";
  return text.drop_back(rest.size() - digits.size());
}

/// MLIR reads 1e-3 as 1 and a name. It stops at |at|, behind the 1.
static bool explainNumber(Diagnostic &diagnostic, StringRef buffer,
                          const char *at) {
  StringRef before(buffer.begin(), at - buffer.begin());
  StringRef exponent = findExponent(StringRef(at, buffer.end() - at));
  StringRef digits = before.take_back(
      before.size() - (before.find_last_not_of("0123456789") + 1));
  before = before.drop_back(digits.size());
  if (exponent.empty() || digits.empty() || before.ends_with(".") ||
      (!before.empty() && (llvm::isAlnum(before.back()) ||
                           StringRef("_$%#@!^").contains(before.back()))))
    return false;
  auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>();
  Diagnostic explained(FileLineColLoc::get(place.getFilename(), place.getLine(),
                                           place.getColumn() - digits.size()),
                       DiagnosticSeverity::Error);
  explained << "number " << digits << exponent
            << " has no decimal point; write " << digits << ".0" << exponent;
  diagnostic = std::move(explained);
  return true;
}

/// "use of value '%g' expects different type than prior uses: 'A' vs 'B'".
static bool explainType(Diagnostic &diagnostic) {
  ArrayRef<DiagnosticArgument> parts = diagnostic.getArguments();
  using Kind = DiagnosticArgument::DiagnosticArgumentKind;
  if (parts.size() != 6 || parts[1].getKind() != Kind::String ||
      parts[3].getKind() != Kind::Type || parts[5].getKind() != Kind::Type ||
      parts[2].getKind() != Kind::String ||
      !parts[2].getAsString().contains("expects different type than prior"))
    return false;
  Diagnostic explained(diagnostic.getLocation(), DiagnosticSeverity::Error);
  explained << "value '" << parts[1].getAsString() << "' is used as "
            << parts[3].getAsType() << ", expected " << parts[5].getAsType()
            << ", its type elsewhere; write that type, or use another value";
  for (Diagnostic &note : diagnostic.getNotes())
    explained.attachNote(note.getLocation()) << "type elsewhere";
  diagnostic = std::move(explained);
  return true;
}

void zero::explainParserError(Diagnostic &diagnostic,
                              llvm::SourceMgr &sources) {
  if (diagnostic.getSeverity() != DiagnosticSeverity::Error ||
      explainType(diagnostic))
    return;
  Place place(diagnostic.getLocation());
  if (place.line == 0)
    return;
  unsigned id = findBuffer(sources, place.file);
  if (id == 0)
    return;
  llvm::SMLoc at =
      sources.FindLocForLineAndColumn(id, place.line, place.column);
  if (at.isValid())
    explainNumber(diagnostic, sources.getMemoryBuffer(id)->getBuffer(),
                  at.getPointer());
}
