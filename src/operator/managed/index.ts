export { keepAgents } from './controller.ts'
