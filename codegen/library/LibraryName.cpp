//===- LibraryName.cpp - Names that a library can have --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/library/Compile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

/// A libNAME.so with one of these names would be loaded instead of another
/// library.
static constexpr StringRef kLibraries[] = {
    "BrokenLocale", "asan", "atomic", "c",       "cuda",    "cudart",
    "dl",           "gcc",  "gcc_s",  "gomp",    "m",       "mpi",
    "nccl",         "nsl",  "omp",    "pthread", "resolv",  "rt",
    "stdc",         "tsan", "ubsan",  "util",    "python3", "z"};

/// A NAME.h with one of these names would be included instead of another
/// header.
static constexpr StringRef kHeaders[] = {
    "alloca",   "assert",   "complex",     "ctype",     "dlfcn",    "errno",
    "fcntl",    "features", "fenv",        "float",     "inttypes", "iso646",
    "limits",   "locale",   "malloc",      "math",      "memory",   "mpi",
    "nccl",     "pthread",  "sched",       "semaphore", "setjmp",   "signal",
    "stdalign", "stdarg",   "stdatomic",   "stdbool",   "stddef",   "stdint",
    "stdio",    "stdlib",   "stdnoreturn", "string",    "strings",  "tgmath",
    "threads",  "time",     "uchar",       "unistd",    "wchar",    "wctype",
    "cuda"};

/// Keywords of C and of C++.
static constexpr StringRef kKeywords[] = {"alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "asm",
                                          "auto",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "char16_t",
                                          "char32_t",
                                          "char8_t",
                                          "class",
                                          "co_await",
                                          "co_return",
                                          "co_yield",
                                          "compl",
                                          "concept",
                                          "const",
                                          "const_cast",
                                          "consteval",
                                          "constexpr",
                                          "constinit",
                                          "continue",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "enum",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "if",
                                          "inline",
                                          "int",
                                          "long",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "reinterpret_cast",
                                          "requires",
                                          "restrict",
                                          "return",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "static_assert",
                                          "static_cast",
                                          "struct",
                                          "switch",
                                          "template",
                                          "this",
                                          "thread_local",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "typeof",
                                          "union",
                                          "unsigned",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "wchar_t",
                                          "while",
                                          "xor",
                                          "xor_eq"};

/// Names of C functions begin with the name of the library.
static bool isIdentifier(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

LogicalResult zero::checkLibraryName(StringRef name, std::string &message) {
  auto refuse = [&](const llvm::Twine &why) {
    message = ("'" + name + "' " + why + "; give another with --name").str();
    return failure();
  };
  if (!isIdentifier(name))
    return refuse("cannot begin the names of C functions");
  if (name == "zero_rt" || name.starts_with("zero_rt_"))
    return refuse("is a name of the runtime, which has libzero_rt.so and "
                  "functions zero_rt_...");
  if (name.starts_with("_"))
    return refuse("begins with '_', as names that C reserves do");
  if (llvm::is_contained(kKeywords, name))
    return refuse("is a keyword of C or C++");
  if (llvm::is_contained(kLibraries, name))
    return refuse("is taken: lib" + name + ".so is a library of the system");
  if (llvm::is_contained(kHeaders, name))
    return refuse("is taken: " + name + ".h is a header of the system");
  return success();
}
