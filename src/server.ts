/** The entry of `dist/server.js`. It only runs the program. */
import { runProgram } from './program/main.ts'

void runProgram()
