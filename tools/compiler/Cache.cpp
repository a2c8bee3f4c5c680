//===- Cache.cpp - Steps that have been compiled before -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/Cache.h"

#include "codegen/cuda/EmitPtx.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace zero;

/// Begins a file. A file of another format has another hash.
static constexpr StringRef kMagic = "zero-compile cache 1\n";

static std::string hashText(StringRef text) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)),
                     /*LowerCase=*/true);
}

/// Adds a text to |all| such that no other texts give the same.
static void append(std::string &all, StringRef text) {
  all += std::to_string(text.size()) + "\n";
  all += text;
}

/// Which file |path| is, without its content: another one after a new build.
static std::string describeFile(StringRef path) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(path, status))
    return "none";
  return std::to_string(status.getSize()) + " " +
         std::to_string(
             status.getLastModificationTime().time_since_epoch().count());
}

/// The file with this code: libzero_compiler.so or a tool.
static std::string describeCompiler() {
  Dl_info info;
  link_map *map = nullptr;
  dladdr1(reinterpret_cast<void *>(&describeCompiler), &info,
          reinterpret_cast<void **>(&map), RTLD_DL_LINKMAP);
  // A program has no name there.
  bool isLibrary = map && map->l_name[0] != '\0';
  return describeFile(isLibrary ? map->l_name : "/proc/self/exe");
}

/// The texts, the options, and what of this machine the result depends on.
static std::string getKey(const CompileSettings &settings, StringRef step,
                          StringRef reference) {
  std::string all = kMagic.str();
  for (StringRef text : {step, reference})
    append(all, text);
  for (OptionText LowerSettings::*option : kLowerOptions)
    append(all, (settings.*option).text);
  for (const OptionText *option :
       {&settings.name, &settings.step, &settings.cpu, &settings.target})
    append(all, option->text);
  append(all, settings.isProved ? "proved" : "");
  append(all, describeCompiler());
  append(all, resolveCpuName("native")); // what can be validated
  append(all, settings.cpu.text == "native" ? llvm::sys::getHostCPUName() : "");
  append(all, settings.target.text == "cpu" ? "" : describeFile(findPtxas()));
  return hashText(all);
}

CacheEntry::CacheEntry(const CompileSettings &settings, StringRef step,
                       StringRef reference)
    : folder(settings.cache.text) {
  SmallString<128> file(folder);
  llvm::sys::path::append(file, getKey(settings, step, reference));
  path = file.str().str();
}

CacheEntry::~CacheEntry() {
  if (descriptor < 0)
    return;
  // Who waits for this lock finds the file then, and who comes later as well.
  llvm::sys::fs::remove(path + ".lock");
  ::close(descriptor);
}

bool CacheEntry::read(CompileOutput &output) const {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                          /*RequiresNullTerminator=*/false);
  if (!file)
    return false;
  constexpr size_t kHash = 64;
  StringRef content = (*file)->getBuffer();
  if (content.size() < kHash ||
      content.take_back(kHash) != hashText(content.drop_back(kHash)) ||
      !content.consume_front(kMagic))
    return false;
  for (std::string *text : {&output.name, &output.step, &output.library,
                            &output.header, &output.plan}) {
    size_t size;
    if (content.consumeInteger(10, size) || !content.consume_front("\n") ||
        size > content.size())
      return false;
    *text = content.take_front(size).str();
    content = content.drop_front(size);
  }
  output.isCached = true;
  return true;
}

LogicalResult CacheEntry::lock(std::chrono::milliseconds limit,
                               std::string &message) {
  if (std::error_code error = llvm::sys::fs::create_directories(folder)) {
    message =
        "cannot create folder '" + folder + "' of --cache: " + error.message();
    return failure();
  }
  descriptor =
      ::open((path + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  auto end = std::chrono::steady_clock::now() + limit;
  while (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 &&
         (errno == EWOULDBLOCK || errno == EINTR) &&
         std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return success();
}

LogicalResult CacheEntry::write(const CompileOutput &output,
                                std::string &message) const {
  std::string content = kMagic.str();
  for (const std::string *text : {&output.name, &output.step, &output.library,
                                  &output.header, &output.plan})
    append(content, *text);
  content += hashText(content);
  // A reader finds a whole file or none.
  SmallString<128> temporary;
  int file;
  std::error_code error =
      llvm::sys::fs::createUniqueFile(path + ".%%%%%%", file, temporary);
  if (!error) {
    llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
    os << content;
    os.close();
    error = os.error();
    // Otherwise the stream would end the process.
    os.clear_error();
    if (!error)
      error = llvm::sys::fs::rename(temporary, path);
    if (error)
      llvm::sys::fs::remove(temporary);
  }
  if (!error)
    return success();
  message =
      "cannot write to folder '" + folder + "' of --cache: " + error.message();
  return failure();
}
