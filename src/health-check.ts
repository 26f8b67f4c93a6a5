/** The health check, for load balancers and monitoring: outside of the interface, and without a key. */
import { type Operation, publish } from './operations.ts'

export const checkHealth: Operation = publish('{"status":"ok"}')
