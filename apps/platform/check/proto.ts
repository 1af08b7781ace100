import { generateProto } from './generated.ts'

/** `npm run proto`: generates the TypeScript of the protobuf messages from apps/shared/contracts/auth.proto. */
await generateProto()
console.log('apps/shared/contracts/gen is up to date with auth.proto.')
