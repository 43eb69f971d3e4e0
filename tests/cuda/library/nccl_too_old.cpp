// A library that says that it is NCCL 2.8.4, for the message about it.
extern "C" int ncclGetVersion(int* version) {
  *version = 2804;
  return 0;
}
