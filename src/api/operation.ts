/** What an operation is: everything that is said of it, in one object. The objects are in files of their own, and listed in operations.ts. */
import type { Reply } from '../http/reply.ts'
import type { Store } from '../store/store.ts'

export interface OperationRequest {
  /** The path's parameter, decoded; empty when the path has none. */
  readonly parameter: string
  /** The query of the request target with its `?`; empty without one. */
  readonly search: string
  readBody(): Promise<unknown>
}

export type Handle = (request: OperationRequest) => Reply | Promise<Reply>

export interface Operation {
  readonly method: 'GET' | 'POST'
  /** Below the base address, which ends in `/v1`; one segment can be a parameter, such as `{petId}`. */
  readonly path: string
  /** Added to each of its responses, its errors included; names and values in turn. */
  readonly headers?: readonly string[]
  /** For the OpenAPI document; an operation without it is not in there. */
  readonly describe?: (basePath: string) => OperationDescription
  /** `basePath` is where the service is mounted; empty at the root of a server. */
  readonly createHandle: (store: Store, basePath: string) => Handle
}

/** Of an operation, what is bound to certain values (interface section 9). None carries a stability marker now. */
export interface OperationDescription {
  readonly [member: string]: unknown
  readonly 'x-stability'?: 'experimental' | 'beta'
}
