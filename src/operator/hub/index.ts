export { firstManager, keepHubs } from './controller.ts'
export { hubGates } from './spec.ts'
