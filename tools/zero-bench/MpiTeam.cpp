//===- MpiTeam.cpp - Processes of MPI that run collectives ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/MpiTeam.h"

#include <cstdlib>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace zero::bench;

// Where the build found MPI, these are its launcher and our program.
#ifndef ZERO_BENCH_MPIEXEC
#define ZERO_BENCH_MPIEXEC ""
#define ZERO_BENCH_MPI_PROGRAM ""
#endif

bool MpiTeam::isAvailable() { return ZERO_BENCH_MPIEXEC[0] != '\0'; }

/// Lets Open MPI use the sockets of the loopback interface, as Team does, and
/// run in a container.
static void setEnvironment() {
  for (auto [name, value] : {std::pair("OMPI_MCA_pml", "ob1"),
                             {"OMPI_MCA_btl", "tcp,self"},
                             {"OMPI_MCA_btl_tcp_if_include", "lo"},
                             {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                             {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                             {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}})
    setenv(name, value, /*overwrite=*/0);
}

MpiTeam::MpiTeam(int32_t ranks, int64_t bytes) {
  setEnvironment();
  int in[2] = {-1, -1}, out[2] = {-1, -1};
  if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
    return;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::string count = std::to_string(ranks), size = std::to_string(bytes);
  const char *arguments[] = {ZERO_BENCH_MPIEXEC, "-n",
                             count.c_str(),      ZERO_BENCH_MPI_PROGRAM,
                             size.c_str(),       nullptr};
  if (posix_spawn(&process, ZERO_BENCH_MPIEXEC, &actions, nullptr,
                  const_cast<char *const *>(arguments), environ))
    process = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  commands = fdopen(in[1], "w");
  replies = fdopen(out[0], "r");
}

MpiTeam::~MpiTeam() {
  for (std::FILE *file : {commands, replies})
    if (file)
      std::fclose(file);
  if (process > 0)
    waitpid(process, nullptr, 0);
}

double MpiTeam::run(size_t collective, std::string &message) {
  char line[64] = "";
  if (commands && replies && process > 0 &&
      std::fprintf(commands, "%zu\n", collective) > 0 &&
      std::fflush(commands) == 0 && std::fgets(line, sizeof(line), replies))
    return std::atof(line);
  message = "the processes of " ZERO_BENCH_MPIEXEC " do not answer";
  return -1;
}
