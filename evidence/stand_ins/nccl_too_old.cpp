// A library that reports NCCL version 2.8.4, to test the error message.
extern "C" int ncclGetVersion(int* version) {
  *version = 2804;
  return 0;
}
