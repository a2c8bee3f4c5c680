//===- LinkLibrary.cpp - An object as a shared library --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code of a step is one object that needs no other: to link it is to give
// its sections addresses. A linker of the machine could be missing or be of
// another version, and would have to be found, started and waited for.
//
// An offset in the file is the address after loading. Sections of equal
// permissions are adjacent, and each group begins on a page of its own.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/LinkLibrary.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"

using namespace mlir;
namespace ELF = llvm::ELF;

namespace {
using Elf = llvm::object::ELF64LE;
using File = llvm::object::ELFFile<Elf>;

constexpr uint64_t kPage = 4096;

/// The loaded sections of the object, by the access that they allow. The loader
/// writes to those of the third kind, and then makes them read-only.
enum Kind { readOnly, code, relocated, data, numKinds };

class Linker {
public:
  Linker(File object, ArrayRef<std::string> exported)
      : object(std::move(object)), exported(exported) {}

  llvm::Expected<std::string> link();

private:
  llvm::Error read();
  llvm::Error placeAll();
  llvm::Error relocate(const Elf::Shdr &table);
  void writeExports();
  void writeDynamic();
  void writeSymbols();
  void writeHeaders();

  size_t place(StringRef name, uint32_t type, uint64_t flags, uint64_t size,
               uint64_t alignment, uint64_t entry = 0);
  void append(StringRef name, uint32_t type, StringRef content, uint64_t entry,
              uint32_t link, uint32_t info);
  /// Room for |T|s in the section |number|.
  template <typename T> T *at(size_t number) {
    return reinterpret_cast<T *>(&file[sections[number].sh_offset]);
  }
  /// An absolute symbol has its value: the section with the number 0 is at 0.
  uint64_t getAddress(const Elf::Sym &symbol) const {
    return sections[placed.lookup(symbol.st_shndx)].sh_addr + symbol.st_value;
  }

  File object;
  ArrayRef<std::string> exported;
  ArrayRef<Elf::Shdr> inputs;
  ArrayRef<Elf::Sym> symbols;
  StringRef symbolNames;
  SmallVector<unsigned> kinds[numKinds]; // numbers of inputs
  SmallVector<const Elf::Sym *> exports;
  size_t numRelative = 0; // addresses that depend on where the library is

  std::string file;
  std::vector<Elf::Shdr> sections;
  std::string names; // of sections
  llvm::DenseMap<unsigned, unsigned> placed;
  uint64_t begins[numKinds], ends[numKinds];
  size_t dynamicSymbols, hash, strings, relative, dynamic;
  size_t nextRelative = 0;
};
} // namespace

template <typename... Values>
static llvm::Error failLink(const char *format, const Values &...values) {
  return llvm::createStringError(std::errc::invalid_argument, format,
                                 values...);
}

/// Reads the loaded sections and the symbols. Refuses content that the code of
/// a step does not have, or that the library would lose.
llvm::Error Linker::read() {
  auto headers = object.sections();
  if (!headers)
    return headers.takeError();
  inputs = *headers;
  for (auto [number, section] : llvm::enumerate(inputs)) {
    auto name = object.getSectionName(section);
    if (!name)
      return name.takeError();
    if (section.sh_type == ELF::SHT_SYMTAB) {
      auto found = object.symbols(&section);
      auto text = object.getStringTableForSymtab(section);
      if (!found || !text)
        return llvm::joinErrors(found.takeError(), text.takeError());
      symbols = *found;
      symbolNames = *text;
    }
    if (!(section.sh_flags & ELF::SHF_ALLOC))
      continue;
    if ((section.sh_type != ELF::SHT_PROGBITS &&
         section.sh_type != ELF::SHT_NOBITS &&
         section.sh_type != ELF::SHT_X86_64_UNWIND) ||
        (section.sh_flags & ELF::SHF_TLS))
      return failLink("section '%s' is of a kind that no step has",
                      name->str().c_str());
    Kind kind = section.sh_flags & ELF::SHF_EXECINSTR  ? code
                : !(section.sh_flags & ELF::SHF_WRITE) ? readOnly
                : name->starts_with(".data.rel.ro")    ? relocated
                                                       : data;
    kinds[kind].push_back(number);
  }
  for (const Elf::Sym &symbol : symbols.drop_front(symbols.empty() ? 0 : 1)) {
    auto name = symbol.getName(symbolNames);
    if (!name)
      return name.takeError();
    if (symbol.st_shndx == ELF::SHN_UNDEF || symbol.st_shndx == ELF::SHN_COMMON)
      return failLink("undefined symbol '%s'", name->str().c_str());
    if (symbol.getBinding() != ELF::STB_LOCAL &&
        (exported.empty() || llvm::is_contained(exported, *name)))
      exports.push_back(&symbol);
  }
  return llvm::Error::success();
}

/// Adds a section behind all others.
size_t Linker::place(StringRef name, uint32_t type, uint64_t flags,
                     uint64_t size, uint64_t alignment, uint64_t entry) {
  Elf::Shdr section = {};
  section.sh_name = names.size();
  names += name.str() + '\0';
  section.sh_type = type;
  section.sh_flags = flags;
  section.sh_offset = llvm::alignTo(file.size(), alignment);
  section.sh_addr = section.sh_offset;
  section.sh_size = size;
  section.sh_addralign = alignment;
  section.sh_entsize = entry;
  file.resize(section.sh_offset + size);
  sections.push_back(section);
  return sections.size() - 1;
}

static constexpr size_t kNumHeaders = numKinds + 3;
static constexpr size_t kNumDynamic = 10;

llvm::Error Linker::placeAll() {
  size_t namesSize = 1;
  for (const Elf::Sym *symbol : exports)
    namesSize += llvm::cantFail(symbol->getName(symbolNames)).size() + 1;
  size_t count = exports.size() + 1;
  names.push_back('\0');
  sections.emplace_back();
  file.resize(sizeof(Elf::Ehdr) + kNumHeaders * sizeof(Elf::Phdr));
  begins[readOnly] = 0;
  dynamicSymbols = place(".dynsym", ELF::SHT_DYNSYM, ELF::SHF_ALLOC,
                         count * sizeof(Elf::Sym), 8, sizeof(Elf::Sym));
  hash = place(".hash", ELF::SHT_HASH, ELF::SHF_ALLOC, (3 + count) * 4, 8, 4);
  strings = place(".dynstr", ELF::SHT_STRTAB, ELF::SHF_ALLOC, namesSize, 1);
  relative = place(".rela.dyn", ELF::SHT_RELA, ELF::SHF_ALLOC,
                   numRelative * sizeof(Elf::Rela), 8, sizeof(Elf::Rela));
  for (Kind kind : {readOnly, code, relocated, data}) {
    if (kind != readOnly) {
      file.resize(llvm::alignTo(file.size(), kPage));
      begins[kind] = file.size();
    }
    for (unsigned number : kinds[kind]) {
      const Elf::Shdr &input = inputs[number];
      placed[number] =
          place(llvm::cantFail(object.getSectionName(input)),
                input.sh_type == ELF::SHT_NOBITS ? uint32_t(ELF::SHT_PROGBITS)
                                                 : uint32_t(input.sh_type),
                // Without the flags that ask a linker to merge equal constants.
                input.sh_flags &
                    (ELF::SHF_ALLOC | ELF::SHF_WRITE | ELF::SHF_EXECINSTR),
                input.sh_size, std::max<uint64_t>(input.sh_addralign, 1));
      if (input.sh_type == ELF::SHT_NOBITS)
        continue;
      auto content = object.getSectionContents(input);
      if (!content)
        return content.takeError();
      llvm::copy(*content, at<uint8_t>(sections.size() - 1));
    }
    if (kind == relocated)
      dynamic =
          place(".dynamic", ELF::SHT_DYNAMIC, ELF::SHF_ALLOC | ELF::SHF_WRITE,
                kNumDynamic * sizeof(Elf::Dyn), 8, sizeof(Elf::Dyn));
    ends[kind] = file.size();
  }
  return llvm::Error::success();
}

/// Applies the relocations of |table| to the section that it is about.
llvm::Error Linker::relocate(const Elf::Shdr &table) {
  const Elf::Shdr &section = sections[placed.lookup(table.sh_info)];
  auto relocations = object.relas(table);
  if (!relocations)
    return relocations.takeError();
  for (const Elf::Rela &relocation : *relocations) {
    const Elf::Sym &symbol = symbols[relocation.getSymbol(false)];
    uint64_t place = section.sh_addr + relocation.r_offset;
    uint64_t value = getAddress(symbol) + relocation.r_addend;
    switch (relocation.getType(false)) {
    case ELF::R_X86_64_64: {
      if (!(section.sh_flags & ELF::SHF_WRITE))
        return failLink("an address is in a section that is not written to");
      Elf::Rela &entry = at<Elf::Rela>(relative)[nextRelative++];
      entry.r_offset = place;
      entry.setSymbolAndType(0, ELF::R_X86_64_RELATIVE, false);
      entry.r_addend = value;
      break;
    }
    case ELF::R_X86_64_REX_GOTPCRELX:
      // A load of an address from a table becomes the address: mov, then lea.
      if (static_cast<uint8_t>(file[place - 2]) != 0x8b)
        return failLink("an address is an operand in a table");
      file[place - 2] = static_cast<char>(0x8d);
      [[fallthrough]];
    case ELF::R_X86_64_PC32:
    case ELF::R_X86_64_PLT32: {
      int64_t distance = value - place;
      if (!llvm::isInt<32>(distance))
        return failLink("a distance of %lld bytes is too large",
                        static_cast<long long>(distance));
      llvm::support::endian::write32le(&file[place], distance);
      break;
    }
    default:
      return failLink("relocation %u is of a kind that no step has",
                      relocation.getType(false));
    }
  }
  return llvm::Error::success();
}

/// Writes .dynsym, .hash and .dynstr. dlsym reads them.
void Linker::writeExports() {
  auto *table = at<Elf::Sym>(dynamicSymbols);
  auto *numbers = at<llvm::support::ulittle32_t>(hash);
  numbers[0] = 1; // bucket
  numbers[1] = exports.size() + 1;
  numbers[2] = exports.empty() ? 0 : 1;
  size_t name = 1;
  for (auto [index, symbol] : llvm::enumerate(exports)) {
    StringRef text = llvm::cantFail(symbol->getName(symbolNames));
    llvm::copy(text, at<char>(strings) + name);
    Elf::Sym &entry = table[index + 1];
    entry = *symbol;
    entry.st_name = name;
    entry.st_value = getAddress(*symbol);
    entry.st_shndx = placed.lookup(symbol->st_shndx);
    // Each symbol of the only bucket names the next one; the last one names 0.
    numbers[3 + index + 1] = index + 1 == exports.size() ? 0 : index + 2;
    name += text.size() + 1;
  }
  sections[dynamicSymbols].sh_link = strings;
  sections[dynamicSymbols].sh_info = 1;
  sections[hash].sh_link = dynamicSymbols;
}

void Linker::writeDynamic() {
  std::pair<int64_t, uint64_t> entries[] = {
      {ELF::DT_HASH, sections[hash].sh_addr},
      {ELF::DT_SYMTAB, sections[dynamicSymbols].sh_addr},
      {ELF::DT_SYMENT, sizeof(Elf::Sym)},
      {ELF::DT_STRTAB, sections[strings].sh_addr},
      {ELF::DT_STRSZ, sections[strings].sh_size},
      {ELF::DT_RELA, sections[relative].sh_addr},
      {ELF::DT_RELASZ, sections[relative].sh_size},
      {ELF::DT_RELAENT, sizeof(Elf::Rela)},
      {ELF::DT_RELACOUNT, numRelative},
      {ELF::DT_NULL, 0}};
  static_assert(std::size(entries) == kNumDynamic);
  for (auto [index, entry] : llvm::enumerate(entries)) {
    at<Elf::Dyn>(dynamic)[index].d_tag = entry.first;
    at<Elf::Dyn>(dynamic)[index].d_un.d_val = entry.second;
  }
  sections[dynamic].sh_link = strings;
  sections[relative].sh_link = dynamicSymbols;
}

/// Adds a section that is not loaded.
void Linker::append(StringRef name, uint32_t type, StringRef content,
                    uint64_t entry, uint32_t link, uint32_t info) {
  size_t number = place(name, type, 0, content.size(), 8, entry);
  llvm::copy(content, at<char>(number));
  sections[number].sh_addr = 0;
  sections[number].sh_link = link;
  sections[number].sh_info = info;
}

/// All symbols of the object, for debuggers and profilers.
void Linker::writeSymbols() {
  std::string table;
  size_t numLocal = 0;
  for (const Elf::Sym &symbol : symbols) {
    Elf::Sym entry = symbol;
    if (placed.contains(symbol.st_shndx)) {
      entry.st_value = getAddress(symbol);
      entry.st_shndx = placed.lookup(symbol.st_shndx);
    }
    table.append(reinterpret_cast<const char *>(&entry), sizeof(entry));
    numLocal += symbol.getBinding() == ELF::STB_LOCAL;
  }
  append(".symtab", ELF::SHT_SYMTAB, table, sizeof(Elf::Sym),
         sections.size() + 1, numLocal);
  append(".strtab", ELF::SHT_STRTAB, symbolNames, 0, 0, 0);
  append(".shstrtab", ELF::SHT_STRTAB, names + ".shstrtab" + '\0', 0, 0, 0);
}

/// Writes the header of the file, the segments that are loaded, and the list of
/// sections.
void Linker::writeHeaders() {
  file.resize(llvm::alignTo(file.size(), 8));
  auto &header = *reinterpret_cast<Elf::Ehdr *>(file.data());
  header = object.getHeader();
  header.e_type = ELF::ET_DYN;
  header.e_phoff = sizeof(Elf::Ehdr);
  header.e_phentsize = sizeof(Elf::Phdr);
  header.e_phnum = kNumHeaders;
  header.e_shoff = file.size();
  header.e_shnum = sections.size();
  header.e_shstrndx = sections.size() - 1;
  auto *programs = reinterpret_cast<Elf::Phdr *>(&file[sizeof(Elf::Ehdr)]);
  auto add = [&](uint32_t type, uint32_t flags, uint64_t begin, uint64_t end,
                 uint64_t alignment) {
    Elf::Phdr &program = *programs++;
    program.p_type = begin == end && type == ELF::PT_LOAD ? ELF::PT_NULL : type;
    program.p_flags = flags;
    program.p_offset = begin;
    program.p_vaddr = begin;
    program.p_filesz = end - begin;
    program.p_memsz = end - begin;
    program.p_align = alignment;
  };
  const uint32_t flags[] = {ELF::PF_R, ELF::PF_R | ELF::PF_X,
                            ELF::PF_R | ELF::PF_W, ELF::PF_R | ELF::PF_W};
  for (Kind kind : {readOnly, code, relocated, data})
    add(ELF::PT_LOAD, flags[kind], begins[kind], ends[kind], kPage);
  const Elf::Shdr &table = sections[dynamic];
  add(ELF::PT_DYNAMIC, ELF::PF_R | ELF::PF_W, table.sh_addr,
      table.sh_addr + table.sh_size, 8);
  add(ELF::PT_GNU_RELRO, ELF::PF_R, begins[relocated],
      llvm::alignTo(ends[relocated], kPage), 1);
  add(ELF::PT_GNU_STACK, ELF::PF_R | ELF::PF_W, 0, 0, 1);
  file.append(reinterpret_cast<const char *>(sections.data()),
              sections.size() * sizeof(Elf::Shdr));
}

llvm::Expected<std::string> Linker::link() {
  if (llvm::Error error = read())
    return error;
  SmallVector<const Elf::Shdr *> tables;
  for (const Elf::Shdr &section : inputs) {
    if (section.sh_type != ELF::SHT_RELA ||
        !(inputs[section.sh_info].sh_flags & ELF::SHF_ALLOC))
      continue;
    tables.push_back(&section);
    auto relocations = object.relas(section);
    if (!relocations)
      return relocations.takeError();
    for (const Elf::Rela &relocation : *relocations)
      numRelative += relocation.getType(false) == ELF::R_X86_64_64;
  }
  if (llvm::Error error = placeAll())
    return error;
  for (const Elf::Shdr *table : tables)
    if (llvm::Error error = relocate(*table))
      return error;
  writeExports();
  writeDynamic();
  writeSymbols();
  writeHeaders();
  return std::move(file);
}

LogicalResult zero::linkLibrary(StringRef object,
                                ArrayRef<std::string> exportedSymbols,
                                std::string &library,
                                std::string &errorMessage) {
  auto file = File::create(object);
  llvm::Expected<std::string> linked =
      file ? Linker(*file, exportedSymbols).link() : file.takeError();
  if (linked) {
    library = std::move(*linked);
    return success();
  }
  errorMessage = "cannot link code: " + llvm::toString(linked.takeError());
  return failure();
}
