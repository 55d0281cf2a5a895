# The packages that Rondo's library is built from and links, each found once. Installed beside RondoConfig.cmake, so that
# a program that links the library finds the same ones.
find_package(PkgConfig REQUIRED)
set(HDF5_PREFER_PARALLEL ON)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(HDF5 REQUIRED COMPONENTS C)
if(NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR "HDF5 was built without MPI; install libhdf5-openmpi-dev")
endif()
find_package(fmt REQUIRED)
find_package(pugixml REQUIRED)
pkg_check_modules(CLP REQUIRED IMPORTED_TARGET clp)
pkg_check_modules(CBC REQUIRED IMPORTED_TARGET cbc)
pkg_check_modules(PETSC REQUIRED IMPORTED_TARGET petsc)
# Debian's file names flags that PETSc itself was compiled with; they are not for those who use it.
set_property(TARGET PkgConfig::PETSC PROPERTY INTERFACE_COMPILE_OPTIONS)
pkg_check_modules(SQLITE3 REQUIRED IMPORTED_TARGET sqlite3>=3.36)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)

# rondo_imported(NAME HEADER LIBRARY): a package without CMake or pkg-config file on Debian, as Rondo::NAME.
function(rondo_imported name header library)
  string(TOUPPER ${name} upper)
  find_path(${upper}_INCLUDE ${header} REQUIRED)
  find_library(${upper}_LIBRARY NAMES ${library} REQUIRED)
  if(NOT TARGET Rondo::${name})
    add_library(Rondo::${name} INTERFACE IMPORTED)
    target_include_directories(Rondo::${name} INTERFACE ${${upper}_INCLUDE})
    target_link_libraries(Rondo::${name} INTERFACE ${${upper}_LIBRARY})
  endif()
endfunction()
rondo_imported(metis metis.h metis)
rondo_imported(nauty nauty/traces.h nauty)
# nauty's headers are C.
set_property(TARGET Rondo::nauty PROPERTY INTERFACE_COMPILE_DEFINITIONS _Thread_local=thread_local)
# LEMON 1.3 is header-only for what we use (max-flow, shortest paths); its headers predate our warnings and C++20.
rondo_imported(lemon lemon/preflow.h lemon)
rondo_imported(cadical cadical.hpp cadical)
