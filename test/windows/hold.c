/* Holds a file open until its standard input ends. `hold FILE r|w|rw SHARED`: opens FILE for reading, writing or both, and shares with
   other programs what the letters of SHARED name: r(ead), w(rite), d(elete, which renaming needs too), or - for nothing. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

int wmain(int count, wchar_t **args) {
  if (count != 4) return 2;
  DWORD access = 0, shared = 0;
  if (wcschr(args[2], L'r')) access |= GENERIC_READ;
  if (wcschr(args[2], L'w')) access |= GENERIC_WRITE;
  if (wcschr(args[3], L'r')) shared |= FILE_SHARE_READ;
  if (wcschr(args[3], L'w')) shared |= FILE_SHARE_WRITE;
  if (wcschr(args[3], L'd')) shared |= FILE_SHARE_DELETE;
  HANDLE file = CreateFileW(args[1], access, shared, NULL, OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, NULL);
  if (file == INVALID_HANDLE_VALUE) {
    printf("error %lu\n", GetLastError());
    return 1;
  }
  puts("held");
  fflush(stdout);
  while (getchar() != EOF) continue;
  CloseHandle(file);
  return 0;
}
