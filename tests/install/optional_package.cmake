# A package that Brigade can do without, in every state of installation (cmake/BrigadeOptional.cmake): the configuration ends well, takes
# the package where it is whole only, and says in one line why it goes on without it.
set(work ${BUILD}/optional-package-check)
file(REMOVE_RECURSE ${work})

file(WRITE ${work}/project/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(asks LANGUAGES CXX)
list(APPEND CMAKE_MODULE_PATH ${SOURCE}/cmake)
include(BrigadeOptional)
brigade_optional(USE_HORN Horn horn::horn horn/horn.h have_horn)
message(STATUS "horn: ${have_horn}")
add_executable(asks main.cpp)
if(have_horn)
  target_link_libraries(asks PRIVATE horn::horn)
endif()
]])
file(WRITE ${work}/project/main.cpp "int main() {}\n")

# configure(NAME switch): configures the project with what stands under ${work}/NAME; sets `failed`, `have` (what became of the package)
# and `said` (the lines about it).
function(configure name switch)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${work}/project -B ${work}/${name}/build -G ${GENERATOR} -DSOURCE=${SOURCE} -DUSE_HORN=${switch}
                          -DCMAKE_PREFIX_PATH=${work}/${name}
                  RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX MATCHALL "-- brigade: [^\n]*" said "${output}")
  string(REGEX MATCH "-- horn: (ON|OFF)" have "${output}")
  set(have "${CMAKE_MATCH_1}" PARENT_SCOPE)
  set(said "${said}" PARENT_SCOPE)
  set(failed "${failed}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

# expect(NAME switch ON|OFF said): the configuration ends well, in one line that has `said`.
function(expect name switch wanted text)
  configure(${name} ${switch})
  list(LENGTH said lines)
  string(FIND "${said}" "${text}" at)
  if(failed OR NOT have STREQUAL wanted OR NOT lines EQUAL 1 OR at EQUAL -1)
    message(SEND_ERROR "${name}, ${switch}: expected ${wanted} and one line with '${text}'; got '${have}' and '${said}' (status ${failed}):\n${output}")
  endif()
endfunction()

# package(NAME file): what HornConfig.cmake is, the header beside it.
function(package name file)
  file(WRITE ${work}/${name}/lib/cmake/Horn/HornConfig.cmake "${file}")
  file(WRITE ${work}/${name}/include/horn/horn.h "#pragma once\n")
endfunction()

set(target "add_library(horn::horn INTERFACE IMPORTED)\nset_target_properties(horn::horn PROPERTIES INTERFACE_INCLUDE_DIRECTORIES \"\${CMAKE_CURRENT_LIST_DIR}/../../../include\")\n")

package(whole "${target}")
expect(whole AUTO ON "with Horn")
expect(whole ON ON "with Horn")
expect(whole OFF OFF "without Horn: switched off by USE_HORN")

file(MAKE_DIRECTORY ${work}/absent)
expect(absent AUTO OFF "without Horn: not found")

package(stops "message(FATAL_ERROR \"Could NOT find OpenTrumpet (missing: OpenTrumpet_LIBRARY OpenTrumpet_INCLUDE_DIR)\")\n")
expect(stops AUTO OFF "without Horn: Could NOT find OpenTrumpet (missing: OpenTrumpet_LIBRARY OpenTrumpet_INCLUDE_DIR)")

package(demands "find_package(OpenTrumpet REQUIRED)\n${target}")
expect(demands AUTO OFF "\"OpenTrumpet\"")

package(declines "set(Horn_FOUND FALSE)\nset(Horn_NOT_FOUND_MESSAGE \"(no brass)\")\n")
expect(declines AUTO OFF "without Horn: not found (no brass)")

package(other_target "add_library(horn::other INTERFACE IMPORTED)\n")
expect(other_target AUTO OFF "has no target horn::horn")

package(no_library "add_library(horn::horn STATIC IMPORTED)\nset_target_properties(horn::horn PROPERTIES IMPORTED_LOCATION \"\${CMAKE_CURRENT_LIST_DIR}/libhorn.a\" INTERFACE_INCLUDE_DIRECTORIES \"\${CMAKE_CURRENT_LIST_DIR}/../../../include\")\n")
expect(no_library AUTO OFF "libhorn.a")

package(no_link "${target}set_target_properties(horn::horn PROPERTIES INTERFACE_LINK_LIBRARIES opentrumpet_that_nobody_has)\n")
expect(no_link AUTO OFF "opentrumpet_that_nobody_has")

package(no_header "${target}")
file(REMOVE ${work}/no_header/include/horn/horn.h)
expect(no_header AUTO OFF "horn/horn.h")

package(no_folder "${target}")
file(REMOVE_RECURSE ${work}/no_folder/include)
expect(no_folder AUTO OFF "non-existent path")

# What was missing has been installed since: the next configuration of the same build folder takes it.
package(no_header "${target}")
expect(no_header AUTO ON "with Horn")

# A package that is demanded, and is not whole, ends the configuration.
foreach(name absent stops other_target)
  configure(${name} ON)
  if(NOT failed)
    message(SEND_ERROR "${name}, ON: expected the configuration to fail; got:\n${output}")
  endif()
endforeach()
file(REMOVE_RECURSE ${work})
