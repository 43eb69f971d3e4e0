# The compilers that can build Brigade. By itself (cmake -D CMAKE_CXX_COMPILER_ID=... -P) it only looks, for a test.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  set(reason "g++ ${CMAKE_CXX_COMPILER_VERSION} lacks parts of C++20 that it uses")
elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
  set(reason "clang ${CMAKE_CXX_COMPILER_VERSION} lacks std::source_location and parenthesized aggregate initialization")
endif()
if(reason)
  message(FATAL_ERROR "Brigade needs g++ 12 or clang 16, or later: ${reason}. Name another compiler in a new build folder: cmake -B build/clang -DCMAKE_CXX_COMPILER=clang++-16")
endif()
