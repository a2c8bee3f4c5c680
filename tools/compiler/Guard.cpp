//===- Guard.cpp - Work that must not end the process ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// LLVM reports what it cannot go on from to a handler, which must not return,
// and ends the process if there is none. An exception would pass through code
// that was built without them. So the thread stops in the handler. What it
// holds is lost, and LLVM is not used again in this process.
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/Guard.h"

#include "llvm/Support/ErrorHandling.h"

#include <clocale>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <mutex>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace zero;

namespace {
/// The work that runs now. It is never destroyed: a thread that has stopped may
/// still refer to it.
struct Work {
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> function;
  pid_t process = 0;
  bool hasEnded = false;
  GuardedEnd end = GuardedEnd::done;
  std::string message;

  void finish(GuardedEnd how, const char *text) {
    std::lock_guard<std::mutex> lock(mutex);
    hasEnded = true;
    end = how;
    message = text;
    changed.notify_all();
  }
};
} // namespace

/// A client may call on a small stack. This is the usual size of the first one.
static constexpr size_t kStackBytes = size_t(8) << 20;

/// What a small step takes. LLVM does not survive an allocation that fails, so
/// there must be as much when it begins.
static constexpr size_t kLeastBytes = size_t(192) << 20;

static bool hasMemory() {
  void *memory = ::mmap(nullptr, kLeastBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED && ::munmap(memory, kLeastBytes) == 0;
}

static Work &getWork() {
  static Work *work = new Work;
  return *work;
}

/// What a handler of LLVM calls instead of ending the process.
[[noreturn]] static void stop(void *, const char *reason, bool) {
  // A child that validates a library is not waited for by a thread.
  if (::getpid() != getWork().process)
    ::_exit(1);
  getWork().finish(GuardedEnd::fatal, reason);
  for (;;)
    ::pause();
}

static void *runWork(void *) {
  // JSON has a decimal point, whatever the language of the client.
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  uselocale(plain);
  Work &work = getWork();
  try {
    work.function();
    work.finish(GuardedEnd::done, "");
  } catch (const std::bad_alloc &) {
    work.finish(GuardedEnd::noMemory, "out of memory");
  }
  return nullptr;
}

/// Starts a thread in which only signals about its own code are delivered. A
/// write beyond the limit of a file's size is then an error of that write.
static int startThread(pthread_t &thread) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS})
    sigdelset(&blocked, signal);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  int error = pthread_create(&thread, &attributes, runWork, nullptr);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

GuardedEnd zero::runGuarded(std::function<void()> function,
                            std::string &message) {
  static std::mutex oneByOne;
  std::lock_guard<std::mutex> one(oneByOne);
  static const bool isInstalled = [] {
    llvm::install_fatal_error_handler(stop);
    llvm::install_bad_alloc_error_handler(stop);
    return true;
  }();
  (void)isInstalled;
  Work &work = getWork();
  std::unique_lock<std::mutex> lock(work.mutex);
  if (work.end != GuardedEnd::fatal) {
    if (!hasMemory()) {
      message = "out of memory: a compile needs " +
                std::to_string(kLeastBytes >> 20) + " MiB or more";
      return GuardedEnd::noMemory;
    }
    work.function = std::move(function);
    work.process = ::getpid();
    work.hasEnded = false;
    pthread_t thread;
    if (int error = startThread(thread)) {
      message = std::string("cannot start a thread: ") + std::strerror(error);
      return GuardedEnd::noMemory;
    }
    work.changed.wait(lock, [&] { return work.hasEnded; });
    lock.unlock();
    if (work.end == GuardedEnd::fatal)
      pthread_detach(thread);
    else
      pthread_join(thread, nullptr);
  }
  message = work.message;
  if (work.end == GuardedEnd::fatal)
    message = "LLVM cannot go on in this process: " + message;
  return work.end;
}
