# Installs the build tree to a folder of its own, builds the examples against it through find_package(brigade), and runs them: a sound
# program says nothing on standard error, and on standard output what is expected.
set(work ${BUILD}/install-check)
file(REMOVE_RECURSE ${work})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failed)
    message(FATAL_ERROR "${ARGN}\nfailed (${failed}):\n${output}")
  endif()
  message(STATUS "${output}")
endfunction()
# example(EXPECTED COMMAND...): status 0, nothing on standard error, all of standard output as the regular expression says.
function(example expected)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(failed OR NOT errors STREQUAL "" OR NOT output MATCHES "^${expected}$")
    message(FATAL_ERROR "${ARGN}\nexpected status 0, nothing on standard error, and on standard output\n${expected}\n"
                        "got status ${failed}, on standard error\n${errors}\nand on standard output\n${output}")
  endif()
endfunction()
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/train_mlp -B ${work}/build -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/build)
set(step "step [ 0-9]+  loss [0-9.]+\n")
# What depends on time shows in some runs only.
foreach(again RANGE 1 5)
  example("${step}${step}${step}${step}${step}${step}final loss 0\\.00[0-9]+\n" ${work}/build/train_mlp)
endforeach()
# It writes a file of its own gradients, and compares with it.
run(${CMAKE_COMMAND} -S ${SOURCE}/examples/check_gradients -B ${work}/check -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${work}/prefix -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_COMMAND} --build ${work}/check)
example("" ${work}/check/check_gradients --write ${work}/step.safetensors)
# A line for the loss and for each of the four gradients, under a line of titles.
set(line "[^\n]+\n")
example("${line}${line}${line}${line}${line}${line}" ${work}/check/check_gradients ${work}/step.safetensors)
if(EXISTS ${work}/prefix/bin/brigade)
  run(${CMAKE_COMMAND} -E env BRIGADE_REFERENCE_DIR=${work}/prefix/share/brigade/reference ${work}/prefix/bin/brigade check --all)
endif()
file(REMOVE_RECURSE ${work})
