ALTER TABLE "operations"."schedule_deliveries" ADD COLUMN "status" text;--> statement-breakpoint
ALTER TABLE "operations"."schedule_deliveries" ADD COLUMN "detail" text;--> statement-breakpoint
ALTER TABLE "operations"."schedule_deliveries" ADD COLUMN "secret_number" integer;