# One static library per folder: all its .cpp files, found by themselves.

# <brigade/core/tensor.h> in the tree as in the installed package: links in the build folder stand for the source folders.
function(brigade_link_folder folder)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include/brigade)
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/include/brigade/${folder} SYMBOLIC)
endfunction()

# brigade_describe_library(folder below...): what every library has. Its target is brigade_<folder> already.
function(brigade_describe_library folder)
  add_library(brigade::${folder} ALIAS brigade_${folder})
  # No DEFINE_SYMBOL: shared libraries are made of the same objects as static ones, which a compiler cache then has.
  set_target_properties(brigade_${folder} PROPERTIES EXPORT_NAME ${folder} POSITION_INDEPENDENT_CODE ON DEFINE_SYMBOL "")
  target_compile_features(brigade_${folder} PUBLIC cxx_std_20)
  target_include_directories(brigade_${folder} PUBLIC $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(brigade_${folder} PRIVATE $<BUILD_INTERFACE:brigade_flags>)
  # Kernels alone are loops over numbers; the rest is no faster with -O3, which takes an eighth longer to compile.
  if(NOT folder STREQUAL "kernels")
    target_compile_options(brigade_${folder} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  foreach(below ${ARGN})
    if(TARGET brigade_${below})
      target_link_libraries(brigade_${folder} PUBLIC brigade_${below})
    endif()
  endforeach()
endfunction()

# brigade_add_library(folder below...): target brigade_<folder>, alias brigade::<folder>. A folder without sources is skipped.
function(brigade_add_library folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/${folder}/cuda/")
  if(NOT BRIGADE_HAVE_GLOO)
    list(FILTER sources EXCLUDE REGEX "/dist/groups/gloo/")
  endif()
  list(FILTER sources EXCLUDE REGEX ${BRIGADE_DIAGNOSIS})
  # The CPU's kernels are larger; those that include themselves for each instruction set stay alone, and so do those that come to so much code that
  # GCC would inline less in its neighbours (--param=large-unit-insns).
  set(large ${sources})
  list(FILTER large INCLUDE REGEX "/kernels/cpu/")
  list(FILTER sources EXCLUDE REGEX "/kernels/cpu/")
  set(kept_alone ${large})
  list(FILTER kept_alone INCLUDE REGEX "/kernels/cpu/(vector/|(loss|matmul|norm)\\.cpp)")
  list(REMOVE_ITEM large ${kept_alone})
  brigade_batch(large ${folder}_cpu 3 ${CMAKE_CURRENT_SOURCE_DIR} brigade/)
  # The more code they come to, the fewer at a time.
  set(together 16)
  set(together_dist 11)
  set(together_optim 9)
  set(together_kernels 8)
  if(DEFINED together_${folder})
    set(together ${together_${folder}})
  endif()
  brigade_batch(sources ${folder} ${together} ${CMAKE_CURRENT_SOURCE_DIR} brigade/)
  list(APPEND sources ${large} ${kept_alone})
  if(folder STREQUAL "core")
    list(APPEND sources ${CMAKE_BINARY_DIR}/generated/version.cpp)
    brigade_write_version(${CMAKE_BINARY_DIR}/generated/version.cpp)
  endif()
  if(NOT sources)
    return()
  endif()
  brigade_link_folder(${folder})
  # With CUDA, the library that is loaded on demand shares the tables and the core with the program.
  set(kind STATIC)
  if(BRIGADE_CUDA AND folder MATCHES "^(core|kernels)$")
    set(kind SHARED)
  endif()
  add_library(brigade_${folder} ${kind} ${sources})
  brigade_describe_library(${folder} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY BRIGADE_LIBRARIES brigade_${folder})
  set_property(GLOBAL APPEND PROPERTY BRIGADE_FOLDERS ${folder})
endfunction()

# The sources of brigade_diagnosis: dist/diagnosis, and what it uses of dist.
set(BRIGADE_DIAGNOSIS "/dist/(diagnosis/.*|errors/.*|timeline/timeline)\\.cpp$")

# brigade_add_diagnosis(below...): target brigade_diagnosis, the part of dist whose files make themselves known by static objects (AddAdvice),
# which a linker would drop: brigade_dist brings it whole to every program, also from the installed package.
function(brigade_add_diagnosis)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/dist/*.cpp)
  list(FILTER sources INCLUDE REGEX ${BRIGADE_DIAGNOSIS})
  brigade_batch(sources diagnosis 14 ${CMAKE_CURRENT_SOURCE_DIR} brigade/)
  add_library(brigade_diagnosis STATIC ${sources})
  brigade_describe_library(diagnosis ${ARGN})
  # Texts.
  target_link_libraries(brigade_diagnosis PRIVATE $<BUILD_INTERFACE:brigade_compiled_quickly>)
  # CMake 3.25 gives a name inside LINK_LIBRARY no namespace when it exports it.
  target_link_libraries(brigade_dist PUBLIC $<BUILD_INTERFACE:$<LINK_LIBRARY:WHOLE_ARCHIVE,brigade_diagnosis>>
                                            $<INSTALL_INTERFACE:$<LINK_LIBRARY:WHOLE_ARCHIVE,brigade::diagnosis>>)
endfunction()

# Version and commit in one small file, written again at configure time only when they change.
function(brigade_write_version file)
  set(commit "unknown")
  find_package(Git QUIET)
  if(GIT_FOUND)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${CMAKE_CURRENT_SOURCE_DIR} rev-parse --short=12 HEAD
                    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed)
      set(commit "unknown")
    endif()
  endif()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
#include <brigade/core/version.h>

namespace brigade {

std::string_view version() noexcept { return "@PROJECT_VERSION@"; }
std::string_view commit() noexcept { return "@commit@"; }

}  // namespace brigade
]])
endfunction()
